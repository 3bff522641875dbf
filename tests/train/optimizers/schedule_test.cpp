#include "fovea/train/optimizers/schedule.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

constexpr double rate = 3e-3, final_rate = 7e-5;

TEST_CASE("Schedule: the warm-up reaches the base rate exactly at step W, for every kind", "[train]") {
  const LrSchedule kind =
      GENERATE(LrSchedule::constant, LrSchedule::linear, LrSchedule::cosine, LrSchedule::warmup_stable_decay);
  const std::int64_t warmup = GENERATE(0, 1, 7, 100);
  const Schedule schedule({.kind = kind,
                           .rate = rate,
                           .final_rate = kind == LrSchedule::constant ? 0 : final_rate,
                           .steps = 211,
                           .warmup = warmup,
                           .decay_steps = kind == LrSchedule::warmup_stable_decay ? 31 : 0});
  CHECK(schedule(warmup) == rate);
  for (std::int64_t s = 0; s < warmup; ++s) {
    CHECK(schedule(s) == Approx(rate * static_cast<double>(s + 1) / static_cast<double>(warmup + 1)));
    CHECK(schedule(s) < schedule(s + 1));
  }
  for (std::int64_t s = warmup; s < 300; ++s) CHECK(schedule(s + 1) <= schedule(s));
  const double last = kind == LrSchedule::constant ? rate : final_rate;
  CHECK(schedule(210) == last);
  CHECK(schedule(1'000'000) == last);
  if (kind != LrSchedule::constant) CHECK(schedule(209) > last);
}

TEST_CASE("Schedule: rates between the ends follow the formula", "[train]") {
  const Schedule linear(
      {.kind = LrSchedule::linear, .rate = rate, .final_rate = final_rate, .steps = 111, .warmup = 10});
  CHECK(linear(60) == Approx((rate + final_rate) / 2));
  CHECK(linear(35) == Approx(0.75 * rate + 0.25 * final_rate));

  const Schedule cosine(
      {.kind = LrSchedule::cosine, .rate = rate, .final_rate = final_rate, .steps = 111, .warmup = 10});
  CHECK(cosine(60) == Approx((rate + final_rate) / 2));
  CHECK(cosine(35) == Approx(final_rate + (rate - final_rate) * (1 + std::cos(std::numbers::pi / 4)) / 2));

  const Schedule stable({.kind = LrSchedule::warmup_stable_decay,
                         .rate = rate,
                         .final_rate = final_rate,
                         .steps = 111,
                         .warmup = 10,
                         .decay_steps = 20});
  CHECK(stable(90) == rate);
  CHECK(stable(91) < rate);
  CHECK(stable(100) == Approx((rate + final_rate) / 2));

  CHECK(Schedule({.rate = rate})(12345) == rate);
}

TEST_CASE("Schedule: runs of one and two steps, and a warm-up that ends at the last step", "[train]") {
  const Schedule one({.kind = LrSchedule::cosine, .rate = rate, .steps = 1});
  CHECK(one(0) == rate);
  const Schedule two({.kind = LrSchedule::linear, .rate = rate, .final_rate = final_rate, .steps = 2});
  CHECK(two(0) == rate);
  CHECK(two(1) == final_rate);
  const Schedule rising({.kind = LrSchedule::linear, .rate = rate, .steps = 10, .warmup = 9});
  CHECK(rising(9) == rate);
  CHECK(rising(10) == 0);
}

TEST_CASE("Schedule: wrong options are errors", "[train]") {
  const auto refused = [](const ScheduleOptions& options, const std::string& text) {
    CHECK_THROWS_AS(Schedule(options), ValueError);
    CHECK_THROWS_WITH(Schedule(options), ContainsSubstring(text));
  };
  constexpr auto wsd = LrSchedule::warmup_stable_decay;
  refused({.rate = -1}, "rate is -1");
  refused({.rate = std::numeric_limits<double>::infinity()}, "rate is inf");
  refused({.rate = std::nan("")}, "rate is nan");
  refused({.kind = LrSchedule::linear, .final_rate = -1, .steps = 5}, "final_rate is -1");
  refused({.kind = LrSchedule::linear, .rate = 1, .final_rate = 2, .steps = 5}, "above the base rate");
  refused({.rate = 1, .final_rate = 0.5}, "a constant rate has none");
  refused({.steps = -1}, "steps is -1");
  refused({.warmup = -1}, "warmup is -1");
  refused({.kind = LrSchedule::cosine}, "needs the length of the run");
  refused({.kind = LrSchedule::cosine, .steps = 100, .warmup = 100}, "a warm-up of 100 steps");
  refused({.steps = 100, .warmup = 200}, "does not end within the 100 steps of the run");
  refused({.kind = wsd, .steps = 100}, "needs the number of steps in which the rate falls");
  refused({.kind = LrSchedule::linear, .steps = 100, .decay_steps = 10}, "only warmup_stable_decay uses it");
  refused({.kind = wsd, .steps = 100, .decay_steps = -1}, "decay_steps is -1");
  refused({.kind = wsd, .steps = 100, .warmup = 50, .decay_steps = 50}, "don't fit");
  refused({.kind = wsd, .steps = 100, .decay_steps = std::numeric_limits<std::int64_t>::max()}, "don't fit");
  CHECK_THROWS_WITH(Schedule({.rate = 1})(-1), ContainsSubstring("step is -1"));
}

}  // namespace
}  // namespace fovea
