#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Rotary position embedding of queries and keys (Su et al. 2021): the op `rotary` with its options. It has
/// no parameters.
///
/// Shapes: x (..., T, D) -> the same. Throws: ShapeError if x has another D.
struct FOVEA_API Rotary {
  std::int64_t d;  ///< D, the size of a head
  RotaryOptions options;

  /// Throws: ValueError if D is below 1, R (D by default) is odd or above D, or the base or the scaling
  /// factor is not above 0.
  explicit Rotary(std::int64_t d, const RotaryOptions& options = {});

  /// The first row of x has position `options.offset + offset`: while generating, `offset` is the number of
  /// positions in the cache.
  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  static void visit(const Rotary&, Visitor&) {}
};

}  // namespace fovea
