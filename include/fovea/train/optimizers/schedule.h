#pragma once

#include <cstdint>
#include <string_view>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// What the learning rate does after its warm-up.
enum class LrSchedule : std::uint8_t {
  constant,             ///< stays
  linear,               ///< goes down on a line
  cosine,               ///< on half a wave (Loshchilov & Hutter 2017, without restarts)
  warmup_stable_decay,  ///< stays, and goes down on a line over the last `decay_steps` (Hu et al. 2024)
};

/// The LrSchedule of that name: "constant", "linear", "cosine", "warmup-stable-decay" or "wsd".
/// Throws: ValueError, which lists them.
FOVEA_API LrSchedule decay_named(std::string_view name);

struct ScheduleOptions {
  LrSchedule decay = LrSchedule::constant;
  double rate = 1e-3;            ///< the base rate
  double final_rate = 0;         ///< at the last step, at most `rate`; not for constant
  std::int64_t steps = 0;        ///< N, the length of the run; 0 for a constant rate without an end
  std::int64_t warmup = 0;       ///< W, the steps before the base rate, less than N
  std::int64_t decay_steps = 0;  ///< D: for warmup_stable_decay only, which needs it; W + D less than N
};

/// The learning rate as a pure function of the step, so that a resumed run goes on as it would have.
///
/// Steps count from 0: the first update is step 0, the last one N - 1.
///   warm-up: rate (s + 1) / (W + 1) at s <= W, which is the base rate exactly at step W, and never 0
///   decay:   final_rate + (rate - final_rate) k, exactly final_rate from step N - 1 on, where k is
///            1 - x (linear) or (1 + cos(pi x)) / 2 (cosine), with x = (s - W) / (N - 1 - W), or
///            min(1, (N - 1 - s) / D) (warmup-stable-decay)
class FOVEA_API Schedule {
 public:
  /// Throws: ValueError for what makes no sense: rates that are negative or not finite, a final rate above
  /// the base rate, no steps to decay in, a warm-up as long as the run, options the decay has no use for.
  explicit Schedule(const ScheduleOptions& options);

  /// The rate for the update at that step. Throws: ValueError if it is negative.
  double operator()(std::int64_t step) const;

 private:
  double rest_of_decay(std::int64_t step) const;

  ScheduleOptions options_;
};

}  // namespace fovea
