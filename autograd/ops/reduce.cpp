#include "autograd/kernels/reduce.h"

#include <cmath>

#include "autograd/base/non_finite.h"
#include "autograd/ops/reference.h"
#include "autograd/ops/rows.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {
namespace {

// The axes of a reduction as bits, so that a rule can keep them.
struct AxisSet {
  std::uint64_t bits = 0;

  bool has(std::size_t axis) const { return (bits >> axis & 1) != 0; }
};

AxisSet all_axes(const Tensor& x) { return {(std::uint64_t{1} << x.rank()) - 1}; }

AxisSet to_set(const char* op, const Tensor& x, const Axes& axes) {
  AxisSet set;
  for (const std::int64_t axis : axes) {
    const auto along = static_cast<std::size_t>(normalize_axis(op, axis, x.rank()));
    if (set.has(along)) {
      fail<ShapeError>("[{}] axis {} of shape {} is given twice", op, axis, to_string(x.shape()));
    }
    set.bits |= std::uint64_t{1} << along;
  }
  return set;
}

// The shape without the reduced axes, or with size 1 there.
Shape reduced_shape(const Shape& shape, AxisSet axes, bool keep) {
  Shape result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!axes.has(axis)) result.push_back(shape[axis]);
    if (axes.has(axis) && keep) result.push_back(1);
  }
  return result;
}

// The axes of x in two groups, those that are kept and those that are reduced, each as a view has them.
struct Groups {
  Shape kept, reduced;
  Strides kept_strides, reduced_strides;

  Groups(const Tensor& x, AxisSet axes) {
    for (std::size_t axis = 0; axis < x.rank(); ++axis) {
      (axes.has(axis) ? reduced : kept).push_back(x.shape()[axis]);
      (axes.has(axis) ? reduced_strides : kept_strides).push_back(x.strides()[axis]);
    }
  }
};

template <class Operation>
Tensor combine(const Tensor& x, AxisSet axes, bool keep, bool average = false) {
  Tensor y = empty(reduced_shape(x.shape(), axes, keep), x.dtype());
  const Groups groups(x, axes);
  const kernels::Loops<1> kept(groups.kept, {&groups.kept_strides});
  const kernels::Loops<1> reduced(groups.reduced, {&groups.reduced_strides});
  const double divisor = average ? static_cast<double>(reduced.size()) : 1;
  dispatch(x.dtype(), [&]<class T>() {
    kernels::Reduction<Operation, T>(x.data<T>(), kept, reduced).run(detail::fresh_data<T>(y), divisor);
  });
  return y;
}

// Puts the reduced axes of a result back in place and repeats it along them.
Tensor spread(const Tensor& y, AxisSet axes, const Shape& shape) {
  return broadcast_to(reshape(y, reduced_shape(shape, axes, keepdims)), shape);
}

// How many elements are combined into one result. Throws: ShapeError if there are none.
std::int64_t count_reduced(const char* op, const Tensor& x, AxisSet axes) {
  const std::int64_t count = numel(Groups(x, axes).reduced);
  if (count == 0) {
    fail<ShapeError>("[{}] x {} has no elements along the axes asked for", op, to_string(x.shape()));
  }
  return count;
}

Tensor sum_over(const Tensor& x, AxisSet axes, bool keep) {
  return record("sum", combine<kernels::Sum>(x, axes, keep), {x}, {},
                [axes](const Saved&, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  return {spread(dy, axes, needs.shape(0))};
                });
}

Tensor mean_over(const Tensor& x, AxisSet axes, bool keep) {
  const double share = 1 / static_cast<double>(count_reduced("mean", x, axes));
  constexpr bool average = true;
  return record("mean", combine<kernels::Sum>(x, axes, keep, average), {x}, {},
                [axes, share](const Saved&, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  return {spread(dy * share, axes, needs.shape(0))};
                });
}

// The largest elements share the gradient equally; where the maximum is NaN, all elements do.
Tensor max_gradient(const Tensor& x, const Tensor& y, const Tensor& dy, AxisSet axes) {
  const Bool largest = !(x < spread(y.detach(), axes, x.shape()));
  const Tensor count = sum_over(where(largest, ones({}, x.dtype()), 0.0), axes, keepdims);
  return where(largest, reshape(dy, count.shape()) / count, 0.0);
}

Tensor max_over(const Tensor& x, AxisSet axes, bool keep) {
  count_reduced("max", x, axes);
  const Tensor y = combine<kernels::Max>(x, axes, keep);
  return record("max", y, {x}, {x, y},
                [axes](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {max_gradient(saved[0], saved[1], dy, axes)};
                });
}

// The elements of x in row-major order with the reduced axes last, so that each result has a row.
Tensor as_rows(const Tensor& x, AxisSet axes) {
  Groups groups(x, axes);
  for (const std::int64_t size : groups.reduced) groups.kept.push_back(size);
  for (const std::int64_t stride : groups.reduced_strides) groups.kept_strides.push_back(stride);
  return detail::row_major(detail::view_of(x, groups.kept, groups.kept_strides, detail::impl_of(x).offset));
}

template <class T>
T logsumexp_of_row(const T* x, std::int64_t n) {
  const T shift = kernels::shift_of_row(x, n);
  const double total = kernels::sum_exp(x, n, shift);
  return static_cast<T>(kernels::log_of_sum_exp(x, n, shift, total) + static_cast<double>(shift));
}

template <class T>
std::int64_t first_largest(const T* x, std::int64_t step, std::int64_t n) {
  const T largest = kernels::largest_of(x, step, n);
  std::int64_t i = 0;
  while (x[i * step] != largest && !std::isnan(x[i * step])) ++i;
  return i;
}

// Calls first_largest for every result; `kept` walks over the first elements of the results.
template <class T>
void first_largest_of_all(const T* x, const kernels::Loops<1>& kept, std::int64_t step, std::int64_t n,
                          std::int64_t* out) {
  const std::int64_t runs = std::max<std::int64_t>(1, kernels::elements_per_chunk / n);
  kernels::parallel_for(kept.size(), runs, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t* to = out + begin;
    kept.for_each_piece(begin, end, [&](const auto& offsets, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        *to++ = first_largest(x + offsets[0] + i * kept.step[0], step, n);
      }
    });
  });
}

}  // namespace

Tensor sum(const Tensor& x) { return sum_over(x, all_axes(x), false); }
Tensor sum(const Tensor& x, const Axes& axes, bool keep) { return sum_over(x, to_set("sum", x, axes), keep); }

Tensor mean(const Tensor& x) { return mean_over(x, all_axes(x), false); }
Tensor mean(const Tensor& x, const Axes& axes, bool keep) {
  return mean_over(x, to_set("mean", x, axes), keep);
}

Tensor max(const Tensor& x) { return max_over(x, all_axes(x), false); }
Tensor max(const Tensor& x, const Axes& axes, bool keep) { return max_over(x, to_set("max", x, axes), keep); }

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep) {
  const AxisSet set = to_set("logsumexp", x, axes);
  const Tensor y = empty(reduced_shape(x.shape(), set, keep), x.dtype());
  const std::int64_t n = numel(Groups(x, set).reduced);
  dispatch(x.dtype(), [&, rows = as_rows(x, set)]<class T>() {
    const T* from = rows.template data<T>();
    T* to = detail::fresh_data<T>(y);
    kernels::for_each_row(y.numel(), n,
                          [&](std::int64_t row) { to[row] = logsumexp_of_row(from + row * n, n); });
  });
  return record("logsumexp", y, {x}, {x},
                [axes, set](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  const Shape kept = reduced_shape(needs.shape(0), set, keepdims);
                  return {detail::multiply_no_nan(reshape(dy, kept), detail::weights_over(saved[0], axes))};
                });
}

Tensor reference::logsumexp(const Tensor& x, const Axes& axes, bool keep) {
  const AxisSet set = to_set("logsumexp", x, axes);
  const Tensor shift = detail::shift_of(x, axes);
  const Tensor total = sum(exp(x - shift), axes, keepdims);
  const Bool nothing = total == 0.0;
  const Tensor y = where(nothing, -infinity, log(where(nothing, 1.0, total)) + shift);
  return reshape(y, reduced_shape(x.shape(), set, keep));
}

Indices argmax(const Tensor& x, Axis axis) {
  const AxisSet set = to_set("argmax", x, axis);
  const std::int64_t n = count_reduced("argmax", x, set);
  const Groups groups(x, set);
  const kernels::Loops<1> kept(groups.kept, {&groups.kept_strides});
  return Indices(groups.kept, [&](std::int64_t* out) {
    dispatch(x.dtype(),
             [&]<class T>() { first_largest_of_all(x.data<T>(), kept, groups.reduced_strides[0], n, out); });
  });
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (shape.size() > x.rank() || broadcast_shapes("sum_to", shape, x.shape()) != x.shape()) {
    fail<ShapeError>("[sum_to] shape {} does not broadcast to {}, so that can't be summed to it",
                     to_string(shape), to_string(x.shape()));
  }
  const std::size_t added = x.rank() - shape.size();
  AxisSet repeated;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const bool repeats = axis < added || (shape[axis - added] == 1 && x.shape()[axis] != 1);
    repeated.bits |= std::uint64_t{repeats} << axis;
  }
  const Tensor y = sum_over(x, repeated, false);
  return y.shape() == shape ? y : reshape(y, shape);
}

}  // namespace fovea
