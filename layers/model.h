#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "fovea/layers/positions.h"
#include "fovea/layers/transformer_block.h"
#include "layers/init.h"

/// What Gpt and Encoder have in common.
namespace fovea {

/// Asks attention for the positions that it brings.
inline void bring_positions(MultiHeadAttentionOptions& attention, Positions positions, bool bidirectional) {
  if (positions == Positions::rotary) attention.rotary.emplace();
  if (positions == Positions::alibi) attention.alibi = true;
  if (positions == Positions::relative)
    attention.relative_bias = RelativeBuckets{.bidirectional = bidirectional};
}

inline std::vector<TransformerBlock> make_blocks(std::int64_t layers, std::int64_t d_model,
                                                 std::int64_t heads, Rng& rng,
                                                 const TransformerBlockOptions& options) {
  std::vector<TransformerBlock> blocks;
  for (std::int64_t i = 0; i < layers; ++i) blocks.emplace_back(d_model, heads, rng, options);
  return blocks;
}

/// GPT-2's first weights (Radford et al. 2019, section 2.3): draws from N(0, 0.02^2), and smaller by
/// sqrt(2 layers) where they add to the sum that runs through all layers, so that it does not grow with them.
inline void initialise_as_gpt2(Embedding& words, AddedPositions& positions,
                               std::vector<TransformerBlock>& blocks, Rng& rng) {
  constexpr double std = 0.02;
  const double added_std = std / std::sqrt(2 * static_cast<double>(blocks.size()));
  words.table = parameter(std * words.table.detach());
  if (Tensor* table = positions.learned ? &positions.learned->table : nullptr) {
    *table = parameter(std * table->detach());
  }
  for (TransformerBlock& block : blocks) block.initialise(std, added_std, rng);
}

}  // namespace fovea
