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
///   A = softmax(mask(Q K^T / sqrt(D))),  y = A V Wo,  with Q = x Wq, K = x Wk, V = x Wv.
///
/// Each parameter is initialised uniformly within +-1/sqrt(its number of rows). The map A is computed only if
/// it is asked for (`with_weights`) or tapped; otherwise the fused kernel of `attention` does the work.
/// Shapes: x (B, T, C) or (T, C) -> the same; A (B, T, T) or (T, T).
/// Throws: ShapeError if x does not fit the parameters.
/// Taps: "scores" and "weights" (B, 1, T, T).
struct FOVEA_API SelfAttention {
  Tensor Wq, Wk, Wv;  ///< (C, D)
  Tensor Wo;          ///< (D, C)

  /// Throws: ValueError if a size is below 1.
  SelfAttention(std::int64_t d_model, std::int64_t d_k, Rng& rng);

  Tensor operator()(const Tensor& x, const Mask& mask = Mask::causal()) const;

  /// The output together with the weights A. Row i of A says how much query i takes from each key; it sums to
  /// 1, or is 0 if the mask hides every key.
  Attention with_weights(const Tensor& x, const Mask& mask = Mask::causal()) const;

  static void visit(const SelfAttention& self, Visitor& v) {
    v("Wq", self.Wq);
    v("Wk", self.Wk);
    v("Wv", self.Wv);
    v("Wo", self.Wo);
  }

 private:
  Attention attended(const Tensor& x, const Mask& mask, bool with_weights) const;
};

}  // namespace fovea
