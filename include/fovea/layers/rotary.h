#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Rotary position embedding of queries and keys (Su et al. 2021): the op `rotary` with its options. It has
/// no tensors.
///
/// Shapes: x (..., T, D) -> the same. Throws: ShapeError if x has another D.
struct FOVEA_API Rotary {
  std::int64_t d;  ///< D: the size of a head
  RotaryOptions options;

  /// Throws: ValueError if D is below 1, R (D by default) is odd or above D, or the base is not above 0.
  explicit Rotary(std::int64_t d, const RotaryOptions& options = {});

  /// The first of the T has position `options.offset + offset`: pass how many a cache holds already.
  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  static void visit(const Rotary&, Visitor&) {}
};

}  // namespace fovea
