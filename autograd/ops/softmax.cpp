#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "autograd/base/non_finite.h"
#include "autograd/ops/reference.h"
#include "autograd/ops/rows.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::along_axis;
using detail::row_major;
using detail::Rows;
using kernels::Block;
using kernels::block_size;
using kernels::cast;
using kernels::for_each_block;
using kernels::load_part;
using kernels::store_part;

namespace {

detail::KernelRuns softmax_runs("softmax"), softmax_backward_runs("softmax_backward");
detail::KernelRuns log_softmax_runs("log_softmax"), log_softmax_backward_runs("log_softmax_backward");

// The result for a row that holds +inf: `at_infinity` there, and `elsewhere` in all other places.
template <class T>
void row_with_infinity(const T* x, T* y, std::int64_t n, T at_infinity, T elsewhere) {
  std::transform(x, x + n, y,
                 [=](T value) { return value > std::numeric_limits<T>::max() ? at_infinity : elsewhere; });
}

// The first pass writes exp(x - shift) to y and adds up; the second multiplies by the scale. The terms of the
// last, incomplete block stay in `end` between the two. A row that is -inf throughout adds up to 0, and its
// scale is 0 as well, so its weights are zeros and not 0 / 0.
template <class T>
void softmax_row(const T* x, T* y, std::int64_t n) {
  Block<T> end = Block<T>::Zero();
  const auto keep = [&](std::int64_t i, auto count, const Block<T>& terms) {
    if (count == block_size) {
      store_part(terms, y + i, count);
    } else {
      end = terms;
    }
  };
  const double total = kernels::sum_exp(x, n, kernels::shift_of_row(x, n), keep);
  if (std::isinf(total)) return row_with_infinity(x, y, n, kernels::weight_of_infinity(x, n), T(0));
  const T scale = total == 0 ? T(0) : static_cast<T>(1 / total);
  for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> terms = count == block_size ? load_part(y + i, count) : end;
    store_part<T>(terms * scale, y + i, count);
  });
}

// dx = y (dy - <dy, y>): the Jacobian diag(y) - y y^T applied to dy without forming it.
template <class T>
void softmax_row_backward(const T* y, const T* dy, T* dx, std::int64_t n) {
  Block<double> products = Block<double>::Zero();
  for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> product = load_part(y + i, count) * load_part(dy + i, count);
    products += cast<double>(product);
  });
  const T along_y = static_cast<T>(products.sum());
  for_each_block(n, [&](std::int64_t i, auto count) {
    store_part<T>(load_part(y + i, count) * (load_part(dy + i, count) - along_y), dx + i, count);
  });
}

// y = x - shift - log sum exp(x - shift). The shift is subtracted first: its sum with the logarithm would be
// rounded to the precision of the larger of the two.
template <class T>
void log_softmax_row(const T* x, T* y, std::int64_t n) {
  const T shift = kernels::shift_of_row(x, n);
  const double total = kernels::sum_exp(x, n, shift);
  if (std::isinf(total)) {
    return row_with_infinity(x, y, n, std::log(kernels::weight_of_infinity(x, n)), static_cast<T>(-infinity));
  }
  const T log_total = total == 0 ? T(0) : static_cast<T>(kernels::log_of_sum_exp(x, n, shift, total));
  for_each_block(n, [&](std::int64_t i, auto count) {
    store_part<T>(load_part(x + i, count) - shift - log_total, y + i, count);
  });
}

// dx = dy - exp(y) sum(dy), and 0 in a row that is -inf throughout.
template <class T>
void log_softmax_row_backward(const T* y, const T* dy, T* dx, std::int64_t n) {
  if (std::all_of(y, y + n, [](T value) { return value == static_cast<T>(-infinity); })) {
    std::fill_n(dx, n, T(0));
    return;
  }
  Block<double> total = Block<double>::Zero();
  for_each_block(n, [&](std::int64_t i, auto count) { total += cast<double>(load_part(dy + i, count)); });
  const T sum_dy = static_cast<T>(total.sum());
  for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> p = kernels::exp(load_part(y + i, count));
    store_part<T>(load_part(dy + i, count) - p * sum_dy, dx + i, count);
  });
}

// Runs a kernel, f(in..., out, n), on the rows of tensors of one shape.
template <class F, class... More>
Tensor map_rows(detail::KernelRuns& runs, const F& f, const Tensor& x, const More&... more) {
  Tensor out = empty(x.shape(), x.dtype());
  const Rows rows(x.shape());
  dispatch(x.dtype(), [&, in = std::array{row_major(x), row_major(more)...}]<class T>() {
    T* to = detail::fresh_data<T>(out);
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
        f((in[k].template data<T>() + row * n)..., to + row * n, n);
      });
    }
    (std::index_sequence_for<Tensor, More...>());
  });
  runs.count();
  return out;
}

Tensor softmax_gradient(const Tensor& y, const Tensor& dy) {
  if (recording()) return y * (dy - sum(y * dy, -1, keepdims));
  return map_rows(
      softmax_backward_runs, [](auto... row) { softmax_row_backward(row...); }, y, dy);
}

Tensor softmax_of_rows(const Tensor& x) {
  const Tensor y = map_rows(
      softmax_runs, [](auto... row) { softmax_row(row...); }, x);
  return record("softmax", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {softmax_gradient(saved[0], dy)};
                });
}

Tensor log_softmax_gradient(const Tensor& y, const Tensor& dy) {
  if (recording()) return where(any(y != -infinity, -1), dy - exp(y) * sum(dy, -1, keepdims), 0.0);
  return map_rows(
      log_softmax_backward_runs, [](auto... row) { log_softmax_row_backward(row...); }, y, dy);
}

Tensor log_softmax_of_rows(const Tensor& x) {
  const Tensor y = map_rows(
      log_softmax_runs, [](auto... row) { log_softmax_row(row...); }, x);
  return record("log_softmax", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {log_softmax_gradient(saved[0], dy)};
                });
}

}  // namespace

Tensor softmax(const Tensor& x, Axis axis) { return along_axis("softmax", x, axis, softmax_of_rows); }

Tensor log_softmax(const Tensor& x, Axis axis) {
  return along_axis("log_softmax", x, axis, log_softmax_of_rows);
}

Tensor reference::softmax(const Tensor& x, Axis axis) { return detail::weights_over(x, axis); }

Tensor reference::log_softmax(const Tensor& logits, Axis axis) {
  const Tensor x = detail::limit_of_infinity(logits, axis);
  const Tensor shifted = x - detail::shift_of(x, axis);
  const Tensor total = sum(exp(shifted), axis, keepdims);
  const Bool nothing = total == 0.0;
  return where(nothing, -infinity, shifted - log(where(nothing, 1.0, total)));
}

}  // namespace fovea
