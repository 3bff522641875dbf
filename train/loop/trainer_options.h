#pragma once

#include <vector>

#include "fovea/train/loop/trainer.h"

namespace fovea::detail {

/// Throws: ValueError for options that make no sense.
void check_options(const TrainerOptions& options);

/// Throws: ValueError for a parameter of the optimizer that is not among the model's, the same tensor by the
/// same name.
void check_parameters(const std::vector<NamedTensor>& known, const Optimizer& optimizer);

}  // namespace fovea::detail
