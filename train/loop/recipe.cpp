#include "fovea/train/loop/recipe.h"

#include <utility>

#include "fovea/layers/name_matches.h"

namespace fovea {
namespace {

bool is_inner_matrix(const NamedTensor& parameter) {
  return is_matrix(parameter) && !name_matches("*.table", parameter.name) &&
         !name_matches("output.*", parameter.name);
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const Recipe& recipe, std::vector<NamedTensor> parameters) {
  switch (recipe.optimizer) {
    case OptimizerKind::adamw:
      return std::make_unique<AdamW>(std::move(parameters),
                                     AdamWOptions{.learning_rate = recipe.learning_rate,
                                                  .beta1 = recipe.beta1,
                                                  .beta2 = recipe.beta2,
                                                  .weight_decay = recipe.weight_decay});
    case OptimizerKind::adam:
      return std::make_unique<Adam>(
          std::move(parameters),
          AdamOptions{.learning_rate = recipe.learning_rate, .beta1 = recipe.beta1, .beta2 = recipe.beta2});
    case OptimizerKind::sgd:
      return std::make_unique<Sgd>(std::move(parameters), SgdOptions{.learning_rate = recipe.learning_rate,
                                                                     .momentum = recipe.beta1,
                                                                     .nesterov = recipe.beta1 > 0});
    case OptimizerKind::lion:
      return std::make_unique<Lion>(std::move(parameters), LionOptions{.learning_rate = recipe.learning_rate,
                                                                       .beta1 = recipe.beta1,
                                                                       .beta2 = recipe.beta2,
                                                                       .weight_decay = recipe.weight_decay});
    case OptimizerKind::muon:
      break;
  }
  return std::make_unique<Muon>(std::move(parameters), MuonOptions{.learning_rate = recipe.learning_rate,
                                                                   .momentum = recipe.beta1,
                                                                   .adam_lr_scale = recipe.adam_lr_scale,
                                                                   .weight_decay = recipe.weight_decay,
                                                                   .matrices = is_inner_matrix});
}

Schedule make_schedule(const Recipe& recipe) {
  return Schedule({.kind = recipe.schedule,
                   .rate = recipe.learning_rate,
                   .final_rate = recipe.schedule == LrSchedule::constant ? 0 : recipe.final_learning_rate,
                   .steps = recipe.steps,
                   .warmup = recipe.warmup,
                   .decay_steps = recipe.decay_steps});
}

}  // namespace fovea
