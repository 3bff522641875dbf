#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "fovea/autograd/base/rng.h"
#include "fovea/train/loop/recent_losses.h"

namespace fovea {

/// How far a Trainer has come: everything besides tensors that the rest of its training depends on. It holds
/// no times, so that it is the same in a resumed run as in one that was never stopped.
struct TrainerStatus {
  std::int64_t step = 0;     ///< completed steps, skipped ones included
  std::int64_t batches = 0;  ///< batches drawn so far, which is the index of the next one
  std::int64_t tokens = 0;   ///< targets learned from so far
  Rng::State data_rng = {};
  Rng::State dropout_rng = {};
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of the last step

  std::int64_t evaluated_at = -1;  ///< the step of the last evaluation; -1 before the first
  double evaluation = std::numeric_limits<double>::quiet_NaN();  ///< the loss of the last evaluation
  std::optional<double> best_evaluation = {};                    ///< the lowest loss of any evaluation
  std::int64_t evaluations_since_best = 0;

  RecentLosses recent_losses = {};
  std::int64_t skipped_non_finite = 0;  ///< steps skipped because the loss or a gradient was not finite
  std::int64_t skipped_outliers = 0;    ///< steps skipped because of TrainerOptions::skip_loss_above_sigma
  std::int64_t skipped_in_row = 0;      ///< steps skipped, for any reason, since the last update
};

}  // namespace fovea
