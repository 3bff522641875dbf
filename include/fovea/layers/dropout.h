#pragma once

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Dropout (Srivastava et al. 2014): in a `TrainMode` scope each element is set to 0 with probability p, and
/// the others are scaled by 1/(1 - p); p = 1 gives zeros. Outside such a scope the layer is the identity. It
/// has no parameters.
///
/// Shapes: x (...) -> the same. Throws: ValueError if p is outside [0, 1].
struct FOVEA_API Dropout {
  double p;

  explicit Dropout(double p);

  Tensor operator()(const Tensor& x) const;

  static void visit(const Dropout&, Visitor&) {}
};

}  // namespace fovea
