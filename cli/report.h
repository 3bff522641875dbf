#pragma once

#include "cli/model.h"
#include "cli/settings.h"
#include "fovea/train/loop/evaluate.h"

namespace fovea::cli {

/// Prints the loss on the data that was kept for validation.
void print_loss(const Evaluation& evaluation);

/// Judges a model on instances of its task that it was not trained on. Prints each metric, and what else the
/// task shows of the model, such as where it looks. Returns whether every metric has reached its limit.
bool print_score(const Settings& settings, const Model& model);

}  // namespace fovea::cli
