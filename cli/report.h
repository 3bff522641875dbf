#pragma once

#include "cli/model.h"
#include "cli/settings.h"
#include "fovea/train/loop/evaluate.h"

namespace fovea::cli {

/// Prints the loss on all that was kept to evaluate on.
void print_loss(const Evaluation& evaluation);

/// Judges the model of a task on what it was not trained on, and prints each number beside its right value.
/// Returns whether all are reached.
bool print_score(const Settings& settings, const Model& model);

}  // namespace fovea::cli
