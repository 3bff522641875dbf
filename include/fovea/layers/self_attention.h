#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// One head of scaled dot-product self-attention (Vaswani et al. 2017, eq. 1):
///   A = softmax(Q K^T / sqrt(D), masked),  y = A V Wo,  with Q = x Wq, K = x Wk, V = x Wv.
///
/// At first each weight is uniform in +-1/sqrt(its number of rows).
/// Shapes: x (B, T, C) -> (B, T, C); weights (B, T, T), rows summing to 1. The B axis may be missing.
/// Throws: ShapeError if x does not fit the weights.
/// Taps: "scores", "weights" (B, 1, T, T).
struct FOVEA_API SelfAttention {
  Tensor Wq, Wk, Wv;  ///< (C, D)
  Tensor Wo;          ///< (D, C)

  /// Throws: ValueError if a size is below 1.
  SelfAttention(std::int64_t d_model, std::int64_t d_k, Rng& rng);

  Tensor operator()(const Tensor& x, const Mask& mask = Mask::causal()) const;

  /// The output together with the weights A: row i says how much query i takes from each key.
  Attention with_weights(const Tensor& x, const Mask& mask = Mask::causal()) const;

  static void visit(const SelfAttention& self, Visitor& v) {
    v("Wq", self.Wq);
    v("Wk", self.Wk);
    v("Wv", self.Wv);
    v("Wo", self.Wo);
  }
};

}  // namespace fovea
