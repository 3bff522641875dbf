#include "train/loop/trainer_options.h"

#include <algorithm>

#include "autograd/base/fail.h"

namespace fovea::detail {
namespace {

void check(bool good, const char* text) {
  if (!good) fail<ValueError>("[Trainer] {}", text);
}

}  // namespace

void check_options(const TrainerOptions& options) {
  check(options.steps >= 1, "steps must be 1 or more");
  check(options.accumulate >= 1, "accumulate must be 1 or more: it is the number of batches in a step");
  check(options.clip > 0, "clip must be above 0: leave it out to clip nothing");
  check(options.skip_loss_above_sigma >= 0,
        "skip_loss_above_sigma must be 0 or more: it is a number of standard deviations");
  check(options.evaluate_every >= 0, "evaluate_every must be 0 or more");
  check(options.evaluation || options.evaluate_every == 0, "evaluate_every needs an evaluation");
}

void check_parameters(const std::vector<NamedTensor>& of_model, const Optimizer& optimizer) {
  for (const auto& [name, tensor] : optimizer.parameters()) {
    const auto same = [&name = name, &tensor = tensor](const NamedTensor& other) {
      return other.name == name && other.tensor.is_same(tensor);
    };
    if (std::ranges::none_of(of_model, same)) {
      fail<ValueError>(
          "[Trainer] the optimizer's parameter '{}' is not the model's: make the optimizer from "
          "named_parameters(model), after the model has its final tensors",
          name);
    }
  }
}

}  // namespace fovea::detail
