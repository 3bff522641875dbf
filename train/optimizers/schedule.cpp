#include "fovea/train/optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/base/fail.h"

namespace fovea {
namespace {

void check_rate(const char* name, double rate) {
  if (!(std::isfinite(rate) && rate >= 0)) {
    fail<ValueError>("[Schedule] {} is {}: it must be finite and 0 or more", name, rate);
  }
}

void check_count(const char* name, std::int64_t count) {
  if (count < 0) fail<ValueError>("[Schedule] {} is {}: it must be 0 or more", name, count);
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  const auto& [kind, rate, final_rate, steps, warmup, decay_steps] = options;
  check_rate("rate", rate);
  check_rate("final_rate", final_rate);
  check_count("steps", steps);
  check_count("warmup", warmup);
  check_count("decay_steps", decay_steps);
  const bool is_constant = kind == LrSchedule::constant;
  if (is_constant && final_rate > 0) {
    fail<ValueError>(
        "[Schedule] final_rate is {}, but a constant rate has none: choose another kind of schedule",
        final_rate);
  }
  if (final_rate > rate) {
    fail<ValueError>("[Schedule] final_rate {} is above the base rate {}: the rate can only fall", final_rate,
                     rate);
  }
  if (!is_constant && steps == 0) {
    fail<ValueError>("[Schedule] steps is 0: a rate that decays needs the length of the run");
  }
  if (steps > 0 && warmup >= steps) {
    fail<ValueError>(
        "[Schedule] a warm-up of {} steps does not end within the {} steps of the run: shorten it", warmup,
        steps);
  }
  if ((kind == LrSchedule::warmup_stable_decay) != (decay_steps > 0)) {
    fail<ValueError>("[Schedule] decay_steps is {}: {}", decay_steps,
                     decay_steps > 0
                         ? "only warmup_stable_decay uses it"
                         : "warmup_stable_decay needs the number of steps in which the rate falls");
  }
  // A sum of the two could overflow.
  if (decay_steps > 0 && decay_steps > steps - 1 - warmup) {
    fail<ValueError>(
        "[Schedule] a warm-up of {} and a decay of {} steps don't fit into the {} steps of the run", warmup,
        decay_steps, steps);
  }
}

double Schedule::operator()(std::int64_t step) const {
  if (step < 0) fail<ValueError>("[Schedule] step is {}: steps count from 0", step);
  const double rate = options_.rate;
  if (step <= options_.warmup) {
    return rate * (static_cast<double>(step + 1) / static_cast<double>(options_.warmup + 1));
  }
  // This form is exact at both ends; final_rate + (rate - final_rate) k is not.
  const double k = decay_factor(step);
  return rate * k + options_.final_rate * (1 - k);
}

// k of the formula: 1 at the base rate, 0 at the final rate.
double Schedule::decay_factor(std::int64_t step) const {
  const auto& [kind, rate, final_rate, steps, warmup, decay_steps] = options_;
  if (kind == LrSchedule::constant) return 1;
  if (step >= steps - 1) return 0;
  const std::int64_t span = kind == LrSchedule::warmup_stable_decay ? decay_steps : steps - 1 - warmup;
  const double line = std::min(1.0, static_cast<double>(steps - 1 - step) / static_cast<double>(span));
  return kind == LrSchedule::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * (1 - line))) : line;
}

}  // namespace fovea
