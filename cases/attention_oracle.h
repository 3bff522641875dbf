#pragma once

#include <cstdint>
#include <functional>

#include "cases/cases.h"

// Attention written as loops in double: the oracle of the rows for attention and self-attention.
namespace fovea::cases {

/// The place of one score among those of attention.
struct ScorePlace {
  std::int64_t batch, head, query, key, queries, keys;
  /// How many positions the key lies after the query, where the last query is aligned with the last key.
  std::int64_t ahead() const { return key - query - (keys - queries); }
};

/// A mask, as a function of the place.
using Visible = std::function<bool(const ScorePlace&)>;

bool every_key(const ScorePlace& at);
bool keys_up_to_query(const ScorePlace& at);  ///< Mask::causal()

/// What an oracle has to know about attention besides the tensors q, k and v.
struct AttentionVariant {
  AttentionOptions options = {};                            ///< without tensors, which are inputs of the row
  Visible visible = every_key;                              ///< the same as options.mask
  bool bias = false, relative_bias = false, sinks = false;  ///< whether the row has this input

  /// The options with the tensors of the row: its inputs "bias", "relative" and "sinks".
  AttentionOptions with(const Inputs& in) const;
};

/// The seed of the TrainMode scope in which the rows with dropout run.
inline constexpr std::uint64_t dropout_seed = 11;

/// One score: scaled, capped, and with its biases.
double score_by_loops(const Inputs& in, const AttentionVariant& variant, const ScorePlace& at);

/// The output and the weights of attention. The weights are those before dropout.
Attention attention_by_loops(const Inputs& in, const AttentionVariant& variant);

/// (B, H, Tq, Dv + Tk): the output and the weights in one tensor, so that one row checks both.
Tensor output_and_weights(const Attention& attention);

}  // namespace fovea::cases
