#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/named_tensor.h"
#include "fovea/layers/gpt.h"
#include "fovea/train/optimizers/optimizer.h"
#include "fovea/train/optimizers/schedule.h"

namespace fovea {

/// The kind of model: Gpt or OneHeadModel.
enum class ModelKind : std::uint8_t { gpt, one_head };

/// The optimizer that trains a model.
enum class OptimizerKind : std::uint8_t { adamw, adam, sgd, lion, muon };

/// A model and how it is trained. Each task recommends a recipe, and the program's options change it. The
/// defaults are nanoGPT's for small texts on a CPU (github.com/karpathy/nanoGPT, README), but with rotary
/// positions, which need fewer steps than learned ones.
struct Recipe {
  ModelKind kind = ModelKind::gpt;
  /// The model's configuration. Its vocabulary and context are replaced by those of the data. A OneHeadModel
  /// uses only `d_model`.
  GptConfig model = without_biases({.d_model = 128,
                                    .heads = 4,
                                    .layers = 4,
                                    .positions = Positions::rotary,
                                    .block = {.mlp = MlpKind::gelu}});

  std::int64_t batch = 12;      ///< sequences in a batch
  std::int64_t accumulate = 1;  ///< batches in a step
  std::int64_t steps = 2000;

  OptimizerKind optimizer = OptimizerKind::adamw;
  double beta1 = 0.9;            ///< of adamw, adam and lion; the momentum of sgd and muon
  double beta2 = 0.99;           ///< of adamw, adam and lion
  double weight_decay = 0.1;     ///< of matrices, with adamw, lion and muon
  double adam_lr_scale = 0.015;  ///< with muon: Adam's learning rate as a multiple of `learning_rate`

  LrSchedule schedule = LrSchedule::cosine;
  double learning_rate = 1e-3;
  double final_learning_rate = 1e-4;
  std::int64_t warmup = 100;
  std::int64_t decay_steps = 0;  ///< for LrSchedule::warmup_stable_decay

  double clip = 1;       ///< the largest norm of all gradients together; 0 turns clipping off
  double ema_decay = 0;  ///< of the moving average of weights (Ema) that is evaluated; 0 turns it off
};

/// Makes the optimizer of a recipe. Muon updates the matrices inside the model; embedding tables ("*.table")
/// and the output layer ("output.*") are left to its Adam. Throws: as the optimizer.
FOVEA_API std::unique_ptr<Optimizer> make_optimizer(const Recipe& recipe,
                                                    std::vector<NamedTensor> parameters);

/// Makes the schedule of a recipe. Throws: as Schedule.
FOVEA_API Schedule make_schedule(const Recipe& recipe);

}  // namespace fovea
