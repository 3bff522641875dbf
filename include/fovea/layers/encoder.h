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

/// The sizes and choices of an Encoder. The default sizes are those of BERT's base model.
struct EncoderConfig {
  std::int64_t vocabulary = 30522;  ///< V
  std::int64_t context = 512;       ///< the longest sequence, if positions are learned
  std::int64_t d_model = 768;       ///< C
  std::int64_t heads = 12;          ///< H
  std::int64_t layers = 12;
  double dropout = 0.1;  ///< of embeddings, of weights of attention, and of what is added, while training

  Positions positions = Positions::learned;
  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::pre;  ///< pre: one more norm at the end; post: as BERT
  Activation activation = Activation::gelu;
  bool bias = true;                             ///< of attention and feed-forward
  std::optional<std::int64_t> d_hidden = {};    ///< F; by default 4 C, or 8/3 C with swiglu
  bool swiglu = false;                          ///< instead of the activation
  std::optional<std::int64_t> padding_id = {};  ///< this id's vector is 0, and stays so
};

/// The encoder of a transformer (Vaswani et al. 2017; BERT, Devlin et al. 2019): blocks in which every
/// position sees every other one.
///   x = drop(words(ids) + positions),  x = block(x) for each block,  y = norm(x) if norms come before.
///
/// Padding is hidden by a mask, `encoder(ids, Mask::lengths(lengths))`: no word is influenced by it. What
/// stands in y at padding is finite, and means nothing.
///
/// First weights are as Gpt's. Shapes: ids (B, T) -> (B, T, C).
/// Throws: ShapeError if ids have other axes, or are longer than learned positions; IndexError for an id
/// outside [0, V).
/// Taps: those of "blocks.0" ... and, in them, of "attention" and "mlp".
struct FOVEA_API Encoder {
  EncoderConfig config;
  Embedding words;
  AddedPositions positions;
  Dropout drop;
  std::vector<TransformerBlock> blocks;
  std::optional<Norm> norm;  ///< none if norms come after

  /// Throws: ValueError if a size is below 1 or the options do not fit together.
  explicit Encoder(const EncoderConfig& config, Rng& rng);

  Tensor operator()(const Indices& ids, const Mask& mask = {}) const;

  static void visit(const Encoder& self, Visitor& v) {
    v("words", self.words);
    v("positions", self.positions);
    v("blocks", self.blocks);
    v("norm", self.norm);
  }
};

}  // namespace fovea
