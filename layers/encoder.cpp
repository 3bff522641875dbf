#include "fovea/layers/encoder.h"

#include "layers/model.h"
#include "layers/model_options.h"

namespace fovea {

Encoder::Encoder(const EncoderConfig& config_, Rng& rng)
    : config(config_),
      token_embedding(config.vocabulary, config.d_model, rng, {.padding = config.padding_id}),
      position_embedding(config.positions, config.context, config.d_model, rng),
      drop(config.block.dropout),
      blocks(make_blocks("Encoder", config, /*bidirectional=*/true, rng)),
      norm(make_final_norm(config)) {
  initialise_as_gpt2(token_embedding, position_embedding, blocks, rng);
}

Tensor Encoder::operator()(const Indices& ids, const Mask& mask) const {
  if (ids.rank() != 2) fail<ShapeError>("[Encoder] expects ids (B, T), and got {}", to_string(ids.shape()));
  Tensor x = drop(position_embedding(token_embedding(ids)));
  for (const TransformerBlock& block : blocks) x = block(x, mask);
  return norm ? call(*norm, x) : x;
}

void Encoder::visit_config(Visitor& v) const { detail::visit_options(config, v); }

}  // namespace fovea
