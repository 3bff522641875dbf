#pragma once

#include "autograd/base/non_finite.h"
#include "autograd/graph/kernel_runs.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops/elementwise.h"

// What ops on rows share: the rows of a tensor in memory, and how to work along any axis.
namespace fovea::detail {

/// The elements of x in row-major order, outside the graph; undefined if x is.
inline Tensor row_major(const Tensor& x) {
  return !x.defined() || x.is_contiguous() ? x : contiguous(x.detach());
}

/// A shape seen as rows along its last axis.
struct Rows {
  std::int64_t count = 1;
  std::int64_t length;

  explicit Rows(const Shape& shape) : length(shape.back()) {
    for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) count *= shape[axis];
  }
};

/// Applies f, which works along the last axis, along any axis.
template <class F>
Tensor along_axis(const char* op, const Tensor& x, std::int64_t axis, const F& f) {
  const std::int64_t along = normalize_axis(op, axis, x.rank());
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  if (along == last) return f(x);
  return contiguous(transpose(f(transpose(x, along, last)), along, last));
}

/// What reference forms subtract before exp: the largest element where it is finite, else 0. It is outside
/// the graph, since no result depends on it.
inline Tensor shift_of(const Tensor& x, const Axes& axes) {
  if (x.numel() == 0) return sum(x.detach(), axes, keepdims);
  const Tensor largest = max(x.detach(), axes, keepdims);
  return where(is_finite(largest), largest, 0.0);
}

/// For reference forms: where +inf meets other elements, 0 in its place and -inf in theirs, which have the
/// same softmax. It is NaN if there are several, or a NaN beside it.
inline Tensor limit_of_infinity(const Tensor& x, const Axes& axes) {
  const Bool infinite = x == infinity;
  if (!any(infinite)) return x;
  const Tensor zero = zeros({}, x.dtype());
  const Tensor count = sum(where(infinite, zero + 1.0, 0.0), axes, keepdims);
  const Tensor limit = where(infinite, where(count == 1.0, zero, nan), where(x == x, zero - infinity, x));
  return where(count == 0.0, x, limit);
}

/// exp(x) / sum exp(x) over the axes, made of ops; 0 where every x is -inf.
inline Tensor weights_over(const Tensor& logits, const Axes& axes) {
  const Tensor x = limit_of_infinity(logits, axes);
  const Tensor terms = exp(x - shift_of(x, axes));
  const Tensor total = sum(terms, axes, keepdims);
  return terms / where(total == 0.0, 1.0, total);
}

}  // namespace fovea::detail
