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

/// Which struct a model is.
enum class ModelKind : std::uint8_t { gpt, one_head };

/// Which optimizer trains it.
enum class OptimizerKind : std::uint8_t { adamw, adam, sgd, lion, muon };

/// A model and how it is trained: what a task recommends and the program's options change. The defaults are
/// nanoGPT's for small texts on a CPU (github.com/karpathy/nanoGPT, README), with rotary positions, which
/// learn from fewer steps than its learned ones.
struct Recipe {
  ModelKind kind = ModelKind::gpt;
  /// The model. Vocabulary and context are those of the data; of OneHeadModel, `d_model` alone counts.
  GptConfig model{.d_model = 128,
                  .heads = 4,
                  .layers = 4,
                  .dropout = 0,
                  .positions = Positions::rotary,
                  .activation = Activation::gelu,
                  .bias = false};

  std::int64_t batch = 12;      ///< sequences in a batch
  std::int64_t accumulate = 1;  ///< batches in a step
  std::int64_t steps = 2000;

  OptimizerKind optimizer = OptimizerKind::adamw;
  double beta1 = 0.9;               ///< momentum, where an optimizer has one beta
  double beta2 = 0.99;              ///< adamw, adam and lion
  double weight_decay = 0.1;        ///< of matrices; not for adam and sgd
  double adam_rate_factor = 0.015;  ///< muon: times the learning rate, for what is no inner matrix

  LrSchedule decay = LrSchedule::cosine;
  double learning_rate = 1e-3;
  double final_learning_rate = 1e-4;
  std::int64_t warmup = 100;
  std::int64_t decay_steps = 0;  ///< for LrSchedule::warmup_stable_decay

  double clip = 1;     ///< the limit of the gradients' norm; 0: none
  double average = 0;  ///< the decay of the moving average of weights (Ema) that is evaluated; 0: none
};

/// The optimizer that a recipe names, with its options. Muon has the matrices inside a model: not tables
/// ("*.table") and not the output ("output.*"). Throws: as the optimizer.
FOVEA_API std::unique_ptr<Optimizer> make_optimizer(const Recipe& recipe,
                                                    std::vector<NamedTensor> parameters);

/// Throws: as Schedule.
FOVEA_API Schedule make_schedule(const Recipe& recipe);

}  // namespace fovea
