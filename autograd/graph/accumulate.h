#pragma once

#include "autograd/graph/node.h"

// Gradients are sums over the uses of a value: what adds them up during a backward pass, and into leaves.
namespace fovea {

// The ops that the graph itself needs; ops/ defines them.

/// Declared with the other ops in fovea/autograd/ops.h.
FOVEA_API Tensor add(const Tensor& a, const Tensor& b);

namespace detail {

/// An op: zeros of a shape, with `part` at a region of it.
Tensor scatter_region(const Tensor& part, const Shape& shape, const Region& region);

/// Whether each element of a region of that shape lies inside an array of `count` elements, and none occurs
/// in the region twice.
bool fits(const Region& region, const Shape& shape, std::int64_t count);

/// total += part, in place and outside the graph, where the array of `total` has no other owner.
void add_in_place(const Tensor& total, const Tensor& part);

/// The cotangent of one output of an op.
class Cotangent {
 public:
  /// Undefined as long as nothing was added.
  const Tensor& total() const { return total_; }

  /// Adds the gradient of one use. Works in place, unless the sum is to be differentiated (`create_graph`).
  void add(const Gradient& gradient, const OutputInfo& output, bool create_graph);

 private:
  void add_region(const Tensor& part, const Region& region, const OutputInfo& output);

  Tensor total_;
  bool owned_ = false;  // the array was made here, so it may be added to in place
};

/// The same values in an array that nothing else refers to. One cotangent may be the gradient of several
/// inputs, or the caller's own tensor, and writing to one of them must leave the others as they are.
Tensor with_own_array(Tensor gradient);

/// Adds the result of a pass to the gradient of a leaf.
void add_to_leaf(GradAccumulator& leaf, Tensor gradient, bool create_graph);

}  // namespace detail
}  // namespace fovea
