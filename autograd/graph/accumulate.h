#pragma once

#include "fovea/autograd/graph/graph.h"

// All that the graph asks of ops: adding cotangents up. Defined in ops/.
namespace fovea {

/// Declared with the other ops in fovea/autograd/ops.h.
FOVEA_API Tensor add(const Tensor& a, const Tensor& b);

namespace detail {

/// total += part, in place and outside the graph, where total's array has no other owner.
void add_in_place(const Tensor& total, const Tensor& part);

/// An op: zeros of a shape, with `part` at a region of it.
Tensor scatter_region(const Tensor& part, const Shape& shape, const Region& region);

}  // namespace detail
}  // namespace fovea
