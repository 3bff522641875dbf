#pragma once

#include <vector>

#include "fovea/train/loop/trainer.h"

namespace fovea::detail {

/// Throws: ValueError for an option outside its range.
void check_options(const TrainerOptions& options);

/// Throws: ValueError if a parameter of the optimizer is not the model's tensor of the same name.
void check_parameters(const std::vector<NamedTensor>& of_model, const Optimizer& optimizer);

}  // namespace fovea::detail
