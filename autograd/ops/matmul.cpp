#include <vector>

#include "autograd/base/fail.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/strided.h"
#include "autograd/ops/elementwise.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

// All but the last `drop` axes.
Shape leading(const Shape& shape, std::size_t drop) { return {shape.begin(), shape.end() - drop}; }

template <class T>
kernels::MatrixView<const T> last_two_axes(const Tensor& x) {
  const std::size_t r = x.rank();
  return {x.data<T>(), x.shape()[r - 2], x.shape()[r - 1], x.strides()[r - 2], x.strides()[r - 1]};
}

// Where each matrix of a batch starts, when x's batch axes are broadcast to `batch`.
std::vector<std::int64_t> matrix_offsets(const Tensor& x, const Shape& batch) {
  const Strides strides(x.strides().begin(), x.strides().end() - 2);
  const Strides walk = kernels::broadcast_strides(leading(x.shape(), 2), strides, batch);
  std::vector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(numel(batch)));
  kernels::for_each_offset(batch, walk, [&](std::int64_t offset) { offsets.push_back(offset); });
  return offsets;
}

// The product over the last two axes, both of rank 2 or more.
Tensor multiply(const Tensor& a, const Tensor& b) {
  const Shape batch = broadcast_shapes("matmul", leading(a.shape(), 2), leading(b.shape(), 2));
  Shape shape = batch;
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  const Tensor c = empty(shape, a.dtype());
  const std::vector<std::int64_t> a_offsets = matrix_offsets(a, batch);
  const std::vector<std::int64_t> b_offsets = matrix_offsets(b, batch);
  dispatch(a.dtype(), [&]<class T>() {
    kernels::gemm<T>(numel(batch), last_two_axes<T>(a), a_offsets.data(), last_two_axes<T>(b),
                     b_offsets.data(), detail::fresh_data<T>(c));
  });
  return c;
}

// Rows of all leading axes in one matrix.
Tensor as_matrix(const Tensor& x) { return reshape(x, {numel(leading(x.shape(), 1)), x.size(-1)}); }

Tensor batched_matmul(const Tensor& a, const Tensor& b) {
  return record("matmul", multiply(a, b), {a, b}, {a, b},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) {
                  return detail::broadcast_gradients(
                      needs, [&] { return matmul(dy, transpose(saved[1])); },
                      [&] { return matmul(transpose(saved[0]), dy); });
                });
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  detail::check_same_dtype("matmul", a, b);
  if (a.rank() == 0 || b.rank() == 0) {
    fail<ShapeError>("[matmul] a scalar has no axis to multiply along: {} x {}", to_string(a.shape()),
                     to_string(b.shape()));
  }
  const std::int64_t inner_of_b = b.size(b.rank() == 1 ? -1 : -2);
  if (a.size(-1) != inner_of_b) {
    fail<ShapeError>("[matmul] inner sizes differ: {} x {}: {} and {}", to_string(a.shape()),
                     to_string(b.shape()), a.size(-1), inner_of_b);
  }
  if (a.rank() == 1) {
    const Tensor row = matmul(reshape(a, {1, a.size(0)}), b);
    const std::int64_t axis = b.rank() == 1 ? -1 : -2;
    return select(row, axis, 0);
  }
  if (b.rank() == 1) return select(matmul(a, reshape(b, {b.size(0), 1})), -1, 0);
  // One matrix for the whole batch: one large product instead of many small ones, forward and backward.
  if (b.rank() == 2 && a.rank() > 2) return linear(a, b);
  return batched_matmul(a, b);
}

Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  detail::check_same_dtype("linear", x, W);
  if (W.rank() != 2)
    fail<ShapeError>("[linear] the weight must be a matrix (I, O), and has shape {}", to_string(W.shape()));
  if (x.rank() == 0 || x.size(-1) != W.size(0)) {
    fail<ShapeError>("[linear] weight expects {} channels, input has {}: x {}, W {}", W.size(0),
                     x.rank() == 0 ? 0 : x.size(-1), to_string(x.shape()), to_string(W.shape()));
  }
  if (b.defined() && b.shape() != Shape{W.size(1)}) {
    fail<ShapeError>("[linear] the bias must have shape ({},), and has {}: W {}", W.size(1),
                     to_string(b.shape()), to_string(W.shape()));
  }
  Shape shape = leading(x.shape(), 1);
  shape.push_back(W.size(1));
  const Tensor y = reshape(batched_matmul(as_matrix(x), W), shape);
  return b.defined() ? add(y, b) : y;
}

}  // namespace fovea
