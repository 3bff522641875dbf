#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Root-mean-square normalisation of the last axis (Zhang & Sennrich 2019), without centering or bias:
///   y = x / sqrt(mean(x^2) + eps) * gain.
///
/// Initially gain is 1.
/// Shapes: x (..., C) -> the same. Throws: ValueError if the size is below 1 or eps below 0.
struct FOVEA_API RmsNorm {
  Tensor gain;  ///< (C,)
  double eps;

  explicit RmsNorm(std::int64_t d_model, double eps = 1e-5);

  Tensor operator()(const Tensor& x) const;

  static void visit(const RmsNorm& self, Visitor& v) { v("gain", self.gain); }
};

}  // namespace fovea
