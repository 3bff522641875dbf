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

/// The smallest language model that attends: one head, and nothing else that could look back.
///   x = embedding(ids) + positions,  h = x + attention(x),  logits = h W + b.
///
/// At first embeddings are draws from N(0, 0.4^2), quieter than the positions, and the weights of attention
/// are uniform with variance 1/C, which keeps the scale of what they multiply: so the head soon finds where
/// to look.
///
/// Shapes: ids (B, T) -> logits (B, T, V). Throws: IndexError for an id outside [0, V).
struct FOVEA_API OneHeadModel {
  Embedding embedding;
  SineCosinePositions positions;
  SelfAttention attention;
  Linear output;

  struct Prediction {
    Tensor logits;   ///< (B, T, V)
    Tensor weights;  ///< (B, T, T): what each row attends to
  };

  /// Throws: ValueError if a size is below 1.
  OneHeadModel(std::int64_t vocabulary, std::int64_t d_model, Rng& rng);

  Tensor operator()(const Indices& ids, const Mask& mask = Mask::causal()) const;
  Prediction with_weights(const Indices& ids, const Mask& mask = Mask::causal()) const;

  static void visit(const OneHeadModel& self, Visitor& v) {
    v("embedding", self.embedding);
    v("positions", self.positions);
    v("attention", self.attention);
    v("output", self.output);
  }
};

}  // namespace fovea
