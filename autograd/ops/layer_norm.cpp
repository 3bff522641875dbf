#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/ops/rows.h"
#include "fovea/autograd/composed.h"
#include "fovea/autograd/graph.h"

namespace fovea {

using detail::row_major;
using detail::Rows;
using kernels::Block;
using kernels::cast;
using kernels::for_each_block;
using kernels::load_part;
using kernels::store_part;

namespace {

// In double: the mean of f32 values around 40,000, rounded to f32, is off by more than they may vary.
struct RowStatistics {
  double mean;
  double rstd;  // 1 / sqrt(variance + eps)
};

template <class T>
Block<double> centered(const T* x, kernels::Whole whole, double mean) {
  return cast<double>(load_part(x, whole)) - mean;
}
// At the end of a row, and 0 beyond it.
template <class T>
Block<double> centered(const T* x, std::int64_t count, double mean) {
  const Block<double> block = cast<double>(load_part(x, count)) - mean;
  Block<double> result;
  kernels::for_each_lane([&](int i) { result[i] = i < static_cast<int>(count) ? block[i] : 0.0; });
  return result;
}

template <class T, class Count>
Block<T> normalized(const T* x, Count count, const RowStatistics& row) {
  const Block<double> y = centered(x, count, row.mean) * row.rstd;
  return cast<T>(y);
}

template <class T>
RowStatistics statistics_of(const T* x, std::int64_t n, double eps) {
  Block<double> sum = Block<double>::Zero();
  for_each_block(n, [&](std::int64_t i, auto count) { sum += cast<double>(load_part(x + i, count)); });
  const double mean = sum.sum() / static_cast<double>(n);
  Block<double> squares = Block<double>::Zero();
  for_each_block(n, [&](std::int64_t i, auto count) { squares += centered(x + i, count, mean).square(); });
  return {mean, 1 / std::sqrt(squares.sum() / static_cast<double>(n) + eps)};
}

// Fills `statistics` (rows, 2): means and rstds.
Tensor fused_value(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps,
                   const Tensor& statistics) {
  Tensor y = empty(x.shape(), x.dtype());
  const Rows rows(x.shape());
  auto* saved = reinterpret_cast<RowStatistics*>(detail::fresh_data<double>(statistics));
  dispatch(x.dtype(), [&, flat = row_major(x), gains = row_major(gain), biases = row_major(bias)]<class T>() {
    const T* scale = gains.template data<T>();
    const T* shift = biases.template data<T>();
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      const T* in = flat.template data<T>() + row * n;
      T* out = detail::fresh_data<T>(y) + row * n;
      saved[row] = statistics_of(in, n, eps);
      for_each_block(n, [&](std::int64_t i, auto count) {
        const Block<T> scaled = normalized(in + i, count, saved[row]) * load_part(scale + i, count);
        store_part<T>(scaled + load_part(shift + i, count), out + i, count);
      });
    });
  });
  return y;
}

// With g = dy gain, y the normalized row and <> the average over it: dx = rstd (g - <g> - y <g y>).
template <class T>
void row_backward(const T* x, const T* gain, const T* dy, const RowStatistics& row, std::int64_t n, T* dx) {
  Block<double> sum_g = Block<double>::Zero(), sum_gy = Block<double>::Zero();
  for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> g = load_part(dy + i, count) * load_part(gain + i, count);
    const Block<T> gy = g * normalized(x + i, count, row);
    sum_g += cast<double>(g);
    sum_gy += cast<double>(gy);
  });
  const T mean_g = static_cast<T>(sum_g.sum() / static_cast<double>(n));
  const T mean_gy = static_cast<T>(sum_gy.sum() / static_cast<double>(n));
  for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> g = load_part(dy + i, count) * load_part(gain + i, count);
    const Block<T> y = normalized(x + i, count, row);
    store_part<T>((g - mean_g - y * mean_gy) * static_cast<T>(row.rstd), dx + i, count);
  });
}

Tensor fused_dx(const Tensor& x, const Tensor& gain, const Tensor& statistics, const Tensor& dy) {
  Tensor dx = empty(x.shape(), x.dtype());
  const Rows rows(x.shape());
  const auto* saved = reinterpret_cast<const RowStatistics*>(statistics.data<double>());
  dispatch(x.dtype(), [&, flat = row_major(x), gains = row_major(gain), upstream = row_major(dy)]<class T>() {
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      row_backward(flat.template data<T>() + row * n, gains.template data<T>(),
                   upstream.template data<T>() + row * n, saved[row], n, detail::fresh_data<T>(dx) + row * n);
    });
  });
  return dx;
}

// The sum of dy y over rows. They are taken in pieces of a size that depends on the shape alone, and the sums
// of pieces are added in order.
template <class T>
void sum_dgain(const T* x, const RowStatistics* saved, const T* dy, const Rows& rows, T* dgain) {
  const std::int64_t n = rows.length;
  const std::int64_t piece = std::max<std::int64_t>(1, kernels::elements_per_chunk / n);
  std::vector<double> sums(static_cast<std::size_t>((rows.count + piece - 1) / piece * n));
  kernels::parallel_for(rows.count, piece, [&](std::int64_t begin, std::int64_t end) {
    for_each_block(n, [&](std::int64_t i, auto count) {
      Block<double> sum = Block<double>::Zero();
      for (std::int64_t row = begin; row < end; ++row) {
        const Block<T> y = normalized(x + row * n + i, count, saved[row]);
        const Block<T> product = load_part(dy + row * n + i, count) * y;
        sum += cast<double>(product);
      }
      store_part(sum, sums.data() + begin / piece * n + i, count);
    });
  });
  for (std::int64_t i = 0; i < n; ++i) {
    double total = 0;
    for (std::int64_t at = i; at < std::ssize(sums); at += n) total += sums[static_cast<std::size_t>(at)];
    dgain[i] = static_cast<T>(total);
  }
}

Tensor fused_dgain(const Tensor& x, const Tensor& statistics, const Tensor& dy) {
  const Rows rows(x.shape());
  Tensor dgain = empty({rows.length}, x.dtype());
  const auto* saved = reinterpret_cast<const RowStatistics*>(statistics.data<double>());
  dispatch(x.dtype(), [&, flat = row_major(x), upstream = row_major(dy)]<class T>() {
    sum_dgain(flat.template data<T>(), saved, upstream.template data<T>(), rows,
              detail::fresh_data<T>(dgain));
  });
  return dgain;
}

struct Normalized {
  Tensor value;
  Tensor rstd;
};

// Centered twice: the mean of f32 values is itself rounded, and the second round finds what is left of it.
Normalized normalized_in_ops(const Tensor& x, double eps) {
  const Tensor once = x - mean(x, -1, keep_axis);
  const Tensor centered = once - mean(once, -1, keep_axis);
  const Tensor rstd = rsqrt(mean(centered * centered, -1, keep_axis) + eps);
  return {centered * rstd, rstd};
}

// Statistics that were saved are constants to the graph, so they are computed anew from x.
Gradients composed_gradients(const Tensor& x, const Tensor& gain, const Tensor& dy, double eps,
                             const Needs& needs) {
  const auto [y, rstd] = normalized_in_ops(x, eps);
  Gradients gradients(3, {});
  if (needs[0]) {
    const Tensor g = dy * gain;
    gradients[0] = rstd * (g - mean(g, -1, keep_axis) - y * mean(g * y, -1, keep_axis));
  }
  if (needs[1]) gradients[1] = sum_to(dy * y, needs.shape(1));
  if (needs[2]) gradients[2] = sum_to(dy, needs.shape(2));
  return gradients;
}

Gradients fused_gradients(const Tensor& x, const Tensor& gain, const Tensor& statistics, const Tensor& dy,
                          const Needs& needs) {
  detail::count_run(Kernel::layer_norm_backward);
  Gradients gradients(3, {});
  if (needs[0]) gradients[0] = fused_dx(x, gain, statistics, dy);
  if (needs[1]) gradients[1] = fused_dgain(x, statistics, dy);
  if (needs[2]) gradients[2] = sum_to(dy, needs.shape(2));
  return gradients;
}

void check_parameter(const Tensor& x, const char* name, const Tensor& parameter) {
  detail::check_same_dtype("layer_norm", x, parameter);
  if (parameter.shape() == Shape{x.shape().back()}) return;
  fail<ShapeError>("[layer_norm] {} has shape {}, but x {} needs ({},)", name, to_string(parameter.shape()),
                   to_string(x.shape()), x.shape().back());
}

void check(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  if (!(eps >= 0)) {
    fail<ValueError>("[layer_norm] eps {}: it is added to a variance, so it can't be negative", eps);
  }
  if (x.rank() == 0 || x.shape().back() == 0) {
    fail<ShapeError>("[layer_norm] x {} has no channels along its last axis", to_string(x.shape()));
  }
  if (gain.defined()) check_parameter(x, "gain", gain);
  if (bias.defined()) check_parameter(x, "bias", bias);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  check(x, gain, bias, eps);
  const Shape channels{x.shape().back()};
  const Tensor scale = gain.defined() ? gain : ones(channels, x.dtype());
  const Tensor shift = bias.defined() ? bias : zeros(channels, x.dtype());
  const Tensor statistics = empty({Rows(x.shape()).count, 2}, f64);
  const Tensor y = fused_value(x, scale, shift, eps, statistics);
  detail::count_run(Kernel::layer_norm);
  return record("layer_norm", y, {x, scale, shift}, {x, scale, statistics},
                [eps](const Saved& saved, const Tensor& dy, const Needs& needs) -> Gradients {
                  if (recording()) return composed_gradients(saved[0], saved[1], dy, eps, needs);
                  return fused_gradients(saved[0], saved[1], saved[2], dy, needs);
                });
}

Tensor composed::layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  check(x, gain, bias, eps);
  Tensor y = normalized_in_ops(x, eps).value;
  if (gain.defined()) y = y * gain;
  return bias.defined() ? y + bias : y;
}

}  // namespace fovea
