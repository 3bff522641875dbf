#include "cases/layer_cases.h"
#include "cases/layers/larger_weights.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/encoder.h"

namespace fovea {

void add_encoder_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  const Indices ids{{2, 0, 4}};
  const std::vector<std::string> key_biases{"blocks.0.attention.bk", "blocks.1.attention.bk"};
  EncoderConfig config{
      .vocabulary = 5, .context = 3, .d_model = 4, .heads = 2, .layers = 2, .block = {.d_hidden = 3}};
  cases.add("Encoder, norms before", with_larger_weights(Encoder(config, rng), rng), ids, key_biases);
  config.block.norm_place = NormPlace::post;
  cases.add("Encoder, norms after", with_larger_weights(Encoder(config, rng), rng), ids, key_biases);
}

}  // namespace fovea
