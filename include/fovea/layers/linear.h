#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

struct LinearOptions {
  bool bias = true;
};

/// An affine map of the last axis: y = x W + b.
///
/// Initially W is uniform in +-1/sqrt(I), as in PyTorch's nn.Linear, and b is 0.
/// Shapes: x (..., I) -> (..., O). Throws: ValueError if a size is below 1.
struct FOVEA_API Linear {
  Tensor W;  ///< (I, O)
  Tensor b;  ///< (O,), or undefined if there is no bias

  Linear(std::int64_t in, std::int64_t out, Rng& rng, const LinearOptions& options = {});

  Tensor operator()(const Tensor& x) const;

  static void visit(const Linear& self, Visitor& v) {
    v("W", self.W);
    v("b", self.b);
  }
};

}  // namespace fovea
