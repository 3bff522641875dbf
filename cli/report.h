#pragma once

#include <vector>

#include "cli/model.h"
#include "cli/settings.h"
#include "fovea/train/loop/evaluate.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {

/// Prints the loss on the data that was kept for validation.
void print_loss(const Evaluation& evaluation);

/// Judges a model on instances of its task that it was not trained on. Prints each metric, and what else the
/// task shows of the model, such as where it looks.
std::vector<Metric> print_score(const Settings& settings, const Model& model);

/// Whether every metric has reached its limit; says on the standard error which one has not.
bool check_score(const std::vector<Metric>& metrics);

}  // namespace fovea::cli
