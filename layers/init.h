#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "autograd/base/fail.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Throws: ValueError, naming the layer, if one of the sizes it is made with is below 1.
inline void check_sizes(const char* layer, std::initializer_list<std::int64_t> sizes) {
  for (const std::int64_t size : sizes) {
    if (size < 1) {
      fail<ValueError>("[{}] its sizes are {}: each must be at least 1", layer, to_string(Shape(sizes)));
    }
  }
}

/// A weight (in, out), uniform in +-1/sqrt(in), as in PyTorch's nn.Linear. Its variance is 1 / (3 in).
inline Tensor uniform_weight(std::int64_t in, std::int64_t out, Rng& rng) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  return parameter(uniform({in, out}, rng, -bound, bound));
}

/// A weight drawn from N(0, std^2).
inline Tensor normal_weight(const Shape& shape, double std, Rng& rng) {
  return parameter(std * randn(shape, rng));
}

}  // namespace fovea
