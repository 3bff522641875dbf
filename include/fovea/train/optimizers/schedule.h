#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// What the learning rate does after the warm-up.
enum class LrSchedule : std::uint8_t {
  constant,             ///< it stays the same
  linear,               ///< it falls linearly
  cosine,               ///< it falls along half a cosine wave (Loshchilov & Hutter 2017, without restarts)
  warmup_stable_decay,  ///< it stays, then falls linearly over the last `decay_steps` (Hu et al. 2024)
};

struct ScheduleOptions {
  LrSchedule kind = LrSchedule::constant;
  double rate = 1e-3;            ///< the base rate
  double final_rate = 0;         ///< the rate of the last step, at most `rate`; must be 0 for `constant`
  std::int64_t steps = 0;        ///< N, the length of the run; 0 is allowed for `constant` and means no end
  std::int64_t warmup = 0;       ///< W, the number of steps before the base rate is reached; W < N
  std::int64_t decay_steps = 0;  ///< D, for warmup_stable_decay only, which needs it; W + D < N
};

/// The learning rate as a function of the step alone, so that a resumed run has the same rates.
///
/// Steps count from 0: the first update is step 0, the last one N - 1.
///   warm-up: rate (s + 1) / (W + 1) for s <= W: never 0, and exactly the base rate at step W
///   decay:   final_rate + (rate - final_rate) k: exactly final_rate from step N - 1 on, where k is
///            1 - x (linear) or (1 + cos(pi x)) / 2 (cosine), with x = (s - W) / (N - 1 - W), or
///            min(1, (N - 1 - s) / D) (warmup-stable-decay)
class FOVEA_API Schedule {
 public:
  /// Throws: ValueError if a rate is negative or not finite, the final rate is above the base rate, a rate
  /// that decays has no `steps`, the warm-up is as long as the run, or an option is set that the kind of
  /// schedule does not use.
  explicit Schedule(const ScheduleOptions& options);

  /// The rate for the update at that step. Throws: ValueError if the step is negative.
  double operator()(std::int64_t step) const;

 private:
  double decay_factor(std::int64_t step) const;

  ScheduleOptions options_;
};

}  // namespace fovea
