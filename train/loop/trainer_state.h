#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "fovea/autograd/base/rng.h"
#include "train/loop/recent_losses.h"
#include "train/loop/run_log.h"

namespace fovea::detail {

/// Its key in a checkpoint's metadata.
inline constexpr const char* trainer_state_key = "fovea.trainer";

/// What a checkpoint says of a run besides its tensors. There is no time in it.
struct TrainerState {
  std::int64_t step = 0;     // how many there have been
  std::int64_t batches = 0;  // the number of the next one
  std::int64_t tokens = 0;   // that were learned from
  Rng::State data_rng = {};
  Rng::State dropout_rng = {};
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last step

  std::int64_t evaluated_at = -1;  // the step of the last evaluation; -1: none
  double evaluation = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> best_evaluation = {};
  std::int64_t evaluations_since_best = 0;

  RecentLosses recent = {};
  std::int64_t skipped_non_finite = 0;
  std::int64_t skipped_outliers = 0;
  std::int64_t skipped_in_row = 0;

  RunLog::Sizes log_sizes = {};
};

/// JSON of one line; numbers come back as they are, NaN and infinities as NaN.
std::string to_json(const TrainerState& state);
/// Throws: FileError, which begins with `what`, for anything that `to_json` does not write.
TrainerState trainer_state_from_json(const std::string& what, const std::string& json);

}  // namespace fovea::detail
