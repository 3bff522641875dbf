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
#include "fovea/layers/positions.h"
#include "fovea/layers/transformer_block.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// The configuration of an Encoder. The default sizes are those of BERT's base model.
struct EncoderConfig {
  std::int64_t vocabulary = 30522;  ///< V
  std::int64_t context = 512;       ///< the longest sequence for learned positions
  std::int64_t d_model = 768;       ///< C
  std::int64_t heads = 12;          ///< H
  std::int64_t layers = 12;         ///< the number of blocks

  Positions positions = Positions::learned;
  std::optional<std::int64_t> padding_id = {};  ///< the vector of this id is 0, and is not trained

  /// The options of every block. `block.dropout` also drops elements of the embeddings. BERT has
  /// NormPlace::post.
  TransformerBlockOptions block = {};
};

/// The encoder of a transformer (Vaswani et al. 2017; BERT, Devlin et al. 2019): every position sees every
/// other one.
///   x = drop(token_embedding(ids) + positions),  x = block(x) for each block,
///   y = norm(x) with NormPlace::pre, and x with NormPlace::post.
///
/// Padding is hidden by a mask, `encoder(ids, Mask::lengths(lengths))`, and does not influence other
/// positions. The outputs at padding itself are finite and carry no meaning.
///
/// The initial weights are drawn as those of Gpt.
/// Shapes: ids (B, T) -> (B, T, C).
/// Throws: ShapeError if ids have other axes, or are longer than learned positions; IndexError for an id
/// outside [0, V).
/// Taps: those of "blocks.0", "blocks.1", ... and of their "attention" and "mlp".
struct FOVEA_API Encoder {
  EncoderConfig config;
  Embedding token_embedding;
  PositionEmbedding position_embedding;
  Dropout drop;
  std::vector<TransformerBlock> blocks;
  std::optional<Norm> norm;  ///< empty with NormPlace::post

  /// Throws: ValueError if a size is below 1 or the options do not fit together.
  explicit Encoder(const EncoderConfig& config, Rng& rng);

  Tensor operator()(const Indices& ids, const Mask& mask = {}) const;

  static void visit(const Encoder& self, Visitor& v) {
    self.visit_config(v);
    v("token_embedding", self.token_embedding);
    v("position_embedding", self.position_embedding);
    v("blocks", self.blocks);
    v("norm", self.norm);
  }

 private:
  void visit_config(Visitor& v) const;
};

}  // namespace fovea
