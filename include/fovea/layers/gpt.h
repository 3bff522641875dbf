#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/dropout.h"
#include "fovea/layers/embedding.h"
#include "fovea/layers/kv_cache.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/positions.h"
#include "fovea/layers/transformer_block.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// The sizes and choices of a Gpt. The defaults are those of the smallest GPT-2: 124,439,808 parameters.
struct GptConfig {
  std::int64_t vocabulary = 50257;  ///< V
  std::int64_t context = 1024;      ///< the longest sequence, if positions are learned; room in a cache
  std::int64_t d_model = 768;       ///< C
  std::int64_t heads = 12;          ///< H
  std::int64_t layers = 12;
  double dropout = 0.1;  ///< of embeddings, of weights of attention, and of what is added, while training

  Positions positions = Positions::learned;
  NormKind norm = NormKind::layer;
  Activation activation = Activation::gelu_tanh;
  bool bias = true;         ///< of attention and feed-forward
  bool tied_output = true;  ///< logits by the table of the words, instead of a Linear of its own

  std::optional<std::int64_t> key_value_heads = {};  ///< Hk: fewer for grouped heads
  std::optional<std::int64_t> d_hidden = {};         ///< F; by default 4 C, or 8/3 C with swiglu
  bool swiglu = false;                               ///< instead of the activation
  bool qk_norm = false;                              ///< RmsNorm of queries and keys
  std::optional<std::int64_t> window = {};  ///< how many positions each can look back at, with itself
  bool checkpoint_blocks = false;  ///< compute blocks again in backward instead of keeping what is in them
};

/// GPT-2 (Radford et al. 2019): a language model made of transformer blocks with the norm before.
///   x = drop(words(ids) + positions),  x = block(x) for each block,  logits = norm(x) words^T.
///
/// First weights are GPT-2's: draws from N(0, 0.02^2), those of Wo and of the mlp's second map smaller by
/// sqrt(2 layers), norms 1, biases 0. So the first loss is ln V and little more.
///
/// Shapes: ids (B, T) -> logits (B, T, V).
/// Throws: ShapeError if ids have other axes, or are longer than learned positions; IndexError for an id
/// outside [0, V).
/// Taps: those of "blocks.0" ... and, in them, of "attention" and "mlp".
struct FOVEA_API Gpt {
  GptConfig config;
  Embedding words;           ///< GPT-2's wte
  AddedPositions positions;  ///< wpe
  Dropout drop;
  std::vector<TransformerBlock> blocks;
  Norm norm;                     ///< ln_f
  std::optional<Linear> output;  ///< none, if the output is tied to the words

  /// Throws: ValueError if a size is below 1 or the options do not fit together.
  explicit Gpt(const GptConfig& config, Rng& rng);

  Tensor logits(const Indices& ids, const Mask& mask = Mask::causal()) const;
  Tensor operator()(const Indices& ids) const { return logits(ids); }

  /// What generation keeps of the positions so far. A copy has arrays of its own.
  struct Cache {
    std::vector<KvCache> blocks;
    std::int64_t length = 0;  ///< how many positions count: lower it to go on from an earlier one
  };
  /// An empty one, with room for `context` positions, or others.
  Cache cache(std::int64_t batch, std::optional<std::int64_t> capacity = {}) const;

  /// Logits of the next positions, one or several, that `logits` of the whole sequence gives there. They are
  /// outside any graph.
  /// Throws: also ValueError if the cache is full. The cache is as it was then.
  Tensor logits(const Indices& ids, Cache& cache) const;

  static void visit(const Gpt& self, Visitor& v) {
    v("words", self.words);
    v("positions", self.positions);
    v("blocks", self.blocks);
    v("norm", self.norm);
    v("output", self.output);
  }

 private:
  Tensor embedded(const Indices& ids, std::int64_t offset) const;
  Tensor logits_of(const Tensor& x) const;
};

}  // namespace fovea
