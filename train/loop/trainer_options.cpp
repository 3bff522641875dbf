#include "train/loop/trainer_options.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "train/loop/trainer_state.h"

namespace fovea::detail {
namespace {

void check(bool good, const char* text) {
  if (!good) fail<ValueError>("[Trainer] {}", text);
}

}  // namespace

void check_options(const TrainerOptions& options) {
  check(options.steps >= 1, "steps must be 1 or more");
  check(options.accumulate >= 1, "accumulate must be 1 or more: it counts the batches of a step");
  check(options.clip > 0, "clip must be above 0: leave it out for no limit");
  check(options.outlier >= 0, "outlier must be 0 or more: it counts deviations from the mean loss");
  check(options.evaluate_every >= 0 && options.patience >= 0 && options.checkpoint_every >= 0,
        "evaluate_every, patience and checkpoint_every must be 0 or more");
  check(options.evaluation || (options.evaluate_every == 0 && options.patience == 0),
        "evaluate_every and patience need an evaluation");
  check(options.patience == 0 || options.evaluate_every > 0,
        "patience counts evaluations: set evaluate_every too");
  check(!options.folder.empty() || options.checkpoint_every == 0, "checkpoint_every needs a folder");
  check(options.keep >= 1, "keep must be 1 or more: a run is resumed from its last checkpoint");
  check(!options.seconds || *options.seconds > 0, "seconds must be above 0");
  check(!options.tokens || *options.tokens > 0, "tokens must be above 0");
  check(!options.metadata.contains(trainer_state_key), "the metadata key \"fovea.trainer\" is taken");
}

void check_parameters(const std::vector<NamedTensor>& known, const Optimizer& optimizer) {
  for (const auto& [name, tensor] : optimizer.parameters()) {
    const auto same = [&name = name, &tensor = tensor](const NamedTensor& other) {
      return other.name == name && other.tensor.is_same(tensor);
    };
    if (std::ranges::none_of(known, same)) {
      fail<ValueError>(
          "[Trainer] the optimizer's parameter '{}' is not the model's: make it from "
          "named_parameters(model), after the model has its final tensors",
          name);
    }
  }
}

}  // namespace fovea::detail
