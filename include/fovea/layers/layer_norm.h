#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Layer normalisation of the last axis (Ba et al. 2016):
///   y = (x - mean) / sqrt(variance + eps) * gain + bias, with the biased variance.
///
/// Initially gain is 1 and bias 0.
/// Shapes: x (..., C) -> the same. Throws: ValueError if the size is below 1 or eps below 0.
struct FOVEA_API LayerNorm {
  Tensor gain;  ///< (C,)
  Tensor bias;  ///< (C,)
  double eps;

  explicit LayerNorm(std::int64_t d_model, double eps = 1e-5);

  Tensor operator()(const Tensor& x) const;

  static void visit(const LayerNorm& self, Visitor& v) {
    v("gain", self.gain);
    v("bias", self.bias);
  }
};

}  // namespace fovea
