#include "cases/layer_cases.h"
#include "cases/layers/in_training.h"
#include "cases/layers/larger_weights.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/gpt.h"

namespace fovea {

void add_gpt_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  const Indices ids{{2, 0, 4}};
  const auto model = [&](const GptConfig& config) { return with_larger_weights(Gpt(config, rng), rng); };
  GptConfig config{.vocabulary = 5, .context = 3, .d_model = 4, .heads = 2, .layers = 2};
  config.block = {.mlp = MlpKind::gelu_tanh, .d_hidden = 3};
  cases.add("Gpt", model(config), ids, {"blocks.0.attention.bk", "blocks.1.attention.bk"});
  GptConfig dropping = config;
  dropping.block.dropout = dropping.block.attention.dropout = 0.1;
  cases.add("Gpt, in training", InTraining<Gpt>{model(dropping)}, ids,
            {"layer.blocks.0.attention.bk", "layer.blocks.1.attention.bk"});
  config.recompute = true;
  cases.add("Gpt, recomputed", model(config), ids, {"blocks.0.attention.bk", "blocks.1.attention.bk"});
  cases.add("Gpt, as Llama",
            model({.vocabulary = 5,
                   .d_model = 4,
                   .heads = 2,
                   .layers = 1,
                   .positions = Positions::rotary,
                   .tied_output = false,
                   .block = {.attention = {.key_value_heads = 1, .bias = false, .qk_norm = true},
                             .norm = NormKind::rms,
                             .mlp = MlpKind::swiglu,
                             .d_hidden = 3}}),
            ids);
}

}  // namespace fovea
