#include "fovea/layers/encoder.h"

#include "layers/model.h"

namespace fovea {
namespace {

TransformerBlockOptions block_options(const EncoderConfig& config) {
  TransformerBlockOptions options{.attention = {.bias = config.bias, .dropout = config.dropout},
                                  .norm = config.norm,
                                  .norm_place = config.norm_place,
                                  .activation = config.activation,
                                  .d_hidden = config.d_hidden,
                                  .swiglu = config.swiglu,
                                  .bias = config.bias,
                                  .dropout = config.dropout};
  bring_positions(options.attention, config.positions, /*bidirectional=*/true);
  return options;
}

}  // namespace

Encoder::Encoder(const EncoderConfig& config_, Rng& rng)
    : config(config_),
      words(config.vocabulary, config.d_model, rng, {.padding = config.padding_id}),
      positions(config.positions, config.context, config.d_model, rng),
      drop(config.dropout),
      blocks(make_blocks(config.layers, config.d_model, config.heads, rng, block_options(config))) {
  check_sizes("Encoder", {config.layers});
  initialise_as_gpt2(words, positions, blocks, rng);
  if (config.norm_place == NormPlace::pre) norm = make_norm(config.norm, config.d_model);
}

Tensor Encoder::operator()(const Indices& ids, const Mask& mask) const {
  if (ids.rank() != 2) fail<ShapeError>("[Encoder] expects ids (B, T), and got {}", to_string(ids.shape()));
  Tensor x = drop(positions(words(ids)));
  for (const TransformerBlock& block : blocks) x = block(x, mask);
  return norm ? call(*norm, x) : x;
}

}  // namespace fovea
