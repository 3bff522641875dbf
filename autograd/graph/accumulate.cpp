#include "autograd/graph/accumulate.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace fovea::detail {
namespace {

bool has_one_owner(const Tensor& x) {
  const TensorImpl& impl = impl_of(x);
  return impl.references.load() == 1 && impl.buffer->references.load() == 1 && x.is_contiguous();
}

}  // namespace

bool fits(const Region& region, const Shape& shape, std::int64_t count) {
  if (region.strides.size() != shape.size()) return false;
  SmallVector<std::size_t, 5> axes;  // from the smallest step to the largest
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1) axes.push_back(axis);
  }
  std::ranges::sort(axes, {}, [&](std::size_t axis) { return region.strides[axis]; });
  std::int64_t reach = 0;  // from the first element to the last, along the axes so far
  for (const std::size_t axis : axes) {
    const std::int64_t step = region.strides[axis];
    if (step <= reach || step > (count - 1 - reach) / (shape[axis] - 1)) return false;
    reach += step * (shape[axis] - 1);
  }
  return region.offset >= 0 && region.offset < count - reach;
}

void Cotangent::add(const Gradient& gradient, const OutputInfo& output, bool create_graph) {
  if (create_graph) {
    const Tensor whole =
        gradient.region ? scatter_region(gradient.value, output.shape, *gradient.region) : gradient.value;
    total_ = total_.defined() ? fovea::add(total_, whole) : whole;
  } else if (gradient.region) {
    add_region(gradient.value, *gradient.region, output);
  } else if (!total_.defined()) {
    total_ = gradient.value;
  } else if (owned_) {
    add_in_place(total_, gradient.value);
  } else {
    total_ = fovea::add(total_, gradient.value);
    owned_ = true;
  }
}

void Cotangent::add_region(const Tensor& part, const Region& region, const OutputInfo& output) {
  if (!owned_) {
    const Tensor before = std::exchange(total_, zeros(output.shape, output.dtype));
    if (before.defined()) add_in_place(total_, before);
    owned_ = true;
  }
  add_in_place(view_of(total_, part.shape(), region.strides, region.offset), part);
}

Tensor with_own_array(Tensor gradient) {
  if (has_one_owner(gradient)) return gradient;
  Tensor copy = zeros(gradient.shape(), gradient.dtype());
  add_in_place(copy, gradient);
  return copy;
}

void add_to_leaf(GradAccumulator& leaf, Tensor gradient, bool create_graph) {
  Tensor replaced;  // destroyed outside the lock
  std::lock_guard lock(leaf.mutex);
  if (leaf.dropped) return;
  Tensor& held = leaf.gradient;
  if (!held.defined()) {
    held = create_graph ? std::move(gradient) : with_own_array(std::move(gradient));
  } else if (!create_graph && !held.requires_grad() && has_one_owner(held)) {
    add_in_place(held, gradient);
  } else {
    replaced = std::exchange(held, add(held, gradient));
  }
}

}  // namespace fovea::detail
