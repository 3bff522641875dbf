#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/embedding.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/positions.h"
#include "fovea/layers/self_attention.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// The smallest language model with attention: a single head, and no other part that sees earlier tokens.
///   x = embedding(ids) + positions,  h = x + attention(x),  logits = h W + b.
///
/// Embeddings are initialised from N(0, 0.4^2), smaller than the positions, and the weights of attention
/// uniformly with variance 1/C, which keeps the variance of their input: so the head soon learns where to
/// look.
///
/// Shapes: ids (B, T) -> logits (B, T, V). Throws: IndexError for an id outside [0, V).
struct FOVEA_API OneHeadModel {
  Embedding embedding;
  SineCosinePositions positions;
  SelfAttention attention;
  Linear output;

  struct Prediction {
    Tensor logits;   ///< (B, T, V)
    Tensor weights;  ///< (B, T, T): row i says how much token i attends to each token
  };

  /// Throws: ValueError if a size is below 1.
  OneHeadModel(std::int64_t vocabulary, std::int64_t d_model, Rng& rng);

  Tensor operator()(const Indices& ids, const Mask& mask = Mask::causal()) const;
  /// The logits together with the attention map, which `operator()` does not compute.
  Prediction with_weights(const Indices& ids, const Mask& mask = Mask::causal()) const;

  static void visit(const OneHeadModel& self, Visitor& v) {
    v("embedding", self.embedding);
    v("positions", self.positions);
    v("attention", self.attention);
    v("output", self.output);
  }
};

}  // namespace fovea
