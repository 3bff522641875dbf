#include "cases/layer_cases.h"
#include "cases/layers/in_training.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/transformer_block.h"

namespace fovea {

void add_transformer_block_cases(LayerCases& cases) {
  const Tensor x = randn({1, 3, 4}, cases.rng);
  const auto block = [&](const TransformerBlockOptions& options) {
    return TransformerBlock(4, 2, cases.rng, options);
  };
  const std::vector<std::string> key_bias{"attention.bk"};
  cases.add("TransformerBlock, norms before", block({.d_hidden = 7}), x, key_bias);
  cases.add("TransformerBlock, norms after", block({.norm_place = NormPlace::post, .d_hidden = 7}), x,
            key_bias);
  cases.add("TransformerBlock, RmsNorm and SwiGLU",
            block({.norm = NormKind::rms, .mlp = MlpKind::swiglu, .d_hidden = 5}), x, key_bias);
  cases.add("TransformerBlock, attention only", block({.mlp = MlpKind::none}), x, key_bias);
  cases.add("TransformerBlock, in training",
            InTraining<TransformerBlock>{block({.d_hidden = 5, .dropout = 0.3})}, x, {"layer.attention.bk"});
}

}  // namespace fovea
