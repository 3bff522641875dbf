#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "fovea/layers/embedding.h"
#include "fovea/layers/positions.h"
#include "fovea/layers/transformer_block.h"
#include "layers/init.h"

/// The parts that Gpt and Encoder share.
namespace fovea {

inline bool is_gated(MlpKind kind) { return kind == MlpKind::swiglu || kind == MlpKind::geglu; }

/// The hidden size of a block's MLP. A gated one has three matrices instead of two, and by default about as
/// many elements.
inline std::int64_t hidden_size(std::int64_t d_model, const TransformerBlockOptions& options) {
  return options.d_hidden.value_or(is_gated(options.mlp) ? 8 * d_model / 3 : 4 * d_model);
}

/// Turns on the scheme of positions in attention, with its default options unless some are given.
/// Throws: ValueError if the options ask for another scheme than the model does.
inline void use_positions(const char* model, Positions positions, bool bidirectional,
                          MultiHeadAttentionOptions& attention) {
  const auto check = [&](bool asked, Positions scheme, const char* option) {
    if (asked && positions != scheme) {
      fail<ValueError>(
          "[{}] block.attention.{} is set, but the positions of the model are of another kind: set "
          "`positions` to the same scheme, or leave the option out",
          model, option);
    }
  };
  check(attention.rotary.has_value(), Positions::rotary, "rotary");
  check(attention.alibi, Positions::alibi, "alibi");
  check(attention.relative_bias.has_value(), Positions::relative, "relative_bias");
  if (positions == Positions::rotary && !attention.rotary) attention.rotary.emplace();
  if (positions == Positions::alibi) attention.alibi = true;
  if (positions == Positions::relative && !attention.relative_bias) {
    attention.relative_bias = RelativeBuckets{.bidirectional = bidirectional};
  }
}

/// The blocks of a model, whose configuration is a GptConfig or an EncoderConfig. Throws: as use_positions.
template <class Config>
std::vector<TransformerBlock> make_blocks(const char* model, const Config& config, bool bidirectional,
                                          Rng& rng) {
  check_sizes(model, {config.layers});
  TransformerBlockOptions options = config.block;
  use_positions(model, config.positions, bidirectional, options.attention);
  std::vector<TransformerBlock> blocks;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    blocks.emplace_back(config.d_model, config.heads, rng, options);
  }
  return blocks;
}

/// The norm behind the last block. Where norms come after each addition there is none: the last block ends
/// with one.
template <class Config>
std::optional<Norm> make_final_norm(const Config& config) {
  if (config.block.norm_place == NormPlace::post) return std::nullopt;
  return make_norm(config.block.norm, config.d_model);
}

/// Draws the initial weights of GPT-2 (Radford et al. 2019, section 2.3) from N(0, 0.02^2). The matrices
/// whose product is added to the residual stream are smaller by sqrt(2 layers), so that its variance does not
/// grow with the depth of the model.
inline void initialise_as_gpt2(Embedding& token_embedding, PositionEmbedding& position_embedding,
                               std::vector<TransformerBlock>& blocks, Rng& rng) {
  constexpr double std = 0.02;
  const double added_std = std / std::sqrt(2 * static_cast<double>(blocks.size()));
  token_embedding.table = parameter(std * token_embedding.table.detach());
  if (position_embedding.learned) {
    Tensor& table = position_embedding.learned->table;
    table = parameter(std * table.detach());
  }
  for (TransformerBlock& block : blocks) block.initialise(std, added_std, rng);
}

}  // namespace fovea
