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

/// The configuration of a Gpt. The defaults are those of the smallest GPT-2, which has 124,439,808
/// parameters, except that nothing is dropped.
struct GptConfig {
  std::int64_t vocabulary = 50257;  ///< V
  std::int64_t context = 1024;      ///< the longest sequence for learned positions, and room in a cache
  std::int64_t d_model = 768;       ///< C
  std::int64_t heads = 12;          ///< H
  std::int64_t layers = 12;         ///< the number of blocks

  Positions positions = Positions::learned;
  bool tied_output = true;  ///< the token embedding is also the output layer
  bool recompute = false;   ///< saves memory by computing each block again in backward

  /// The options of every block. `block.dropout` also drops elements of the embeddings.
  TransformerBlockOptions block = {.mlp = MlpKind::gelu_tanh};
};

/// The same configuration without biases in attention and MLP, as most models since PaLM (2022) have it.
FOVEA_API GptConfig without_biases(GptConfig config);

/// GPT-2 (Radford et al. 2019): a causal language model of transformer blocks.
///   x = drop(token_embedding(ids) + positions),  x = block(x) for each block,
///   logits = norm(x) token_embedding^T, or norm(x) W_output where the output is not tied.
///
/// The initial weights are GPT-2's: draws from N(0, 0.02^2), those of Wo and of the MLP's second matrix
/// smaller by sqrt(2 layers), norms 1, biases 0. So the first loss is slightly above ln V.
///
/// Shapes: ids (B, T) -> logits (B, T, V).
/// Throws: ShapeError if ids have other axes, or are longer than learned positions; IndexError for an id
/// outside [0, V).
/// Taps: those of "blocks.0", "blocks.1", ... and of their "attention" and "mlp".
struct FOVEA_API Gpt {
  GptConfig config;
  Embedding token_embedding;             ///< GPT-2's wte
  PositionEmbedding position_embedding;  ///< wpe
  Dropout drop;
  std::vector<TransformerBlock> blocks;
  std::optional<Norm> norm;      ///< ln_f; empty with NormPlace::post
  std::optional<Linear> output;  ///< empty if the output is tied to the token embedding

  /// Throws: ValueError if a size is below 1 or the options do not fit together.
  explicit Gpt(const GptConfig& config, Rng& rng);

  Tensor logits(const Indices& ids, const Mask& mask = Mask::causal()) const;
  Tensor operator()(const Indices& ids) const { return logits(ids); }

  /// The keys and values of the positions so far, kept while generating. A copy has arrays of its own.
  struct Cache {
    std::vector<KvCache> blocks;
    std::int64_t length = 0;  ///< how many positions count; lower it to go back to an earlier one
  };
  /// An empty cache, with room for `capacity` positions, by default `config.context`.
  Cache cache(std::int64_t batch, std::optional<std::int64_t> capacity = {}) const;

  /// The logits of the next positions, equal to those that `logits` of the whole sequence has there. They are
  /// recorded in no graph.
  /// Throws: also ValueError if the cache is full; it is unchanged then.
  Tensor logits(const Indices& ids, Cache& cache) const;

  static void visit(const Gpt& self, Visitor& v) {
    self.visit_config(v);
    v("token_embedding", self.token_embedding);
    v("position_embedding", self.position_embedding);
    v("blocks", self.blocks);
    v("norm", self.norm);
    v("output", self.output);
  }

 private:
  void visit_config(Visitor& v) const;
  Tensor embed(const Indices& ids, std::int64_t offset) const;
  Tensor project(const Tensor& x) const;
};

}  // namespace fovea
