#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/kernels/eight.h"
#include "autograd/ops/rows.h"

// What layer norm and RMS norm share: rows are centered (layer norm only), scaled, and multiplied by a gain.
// The mean of rows that are not centered counts as 0.
namespace fovea::detail {

using kernels::Eight;

// In double, since the rounding of an f32 mean near 40,000 may be larger than the spread of the row.
struct RowStatistics {
  double mean;
  double rstd;  // 1 / sqrt(mean of squares + eps)
};

enum class Centered { no, yes };

// x - mean, in double, whose rounding the result does not feel.
template <class T, class Count>
Eight<double> centered(const T* x, Count count, double mean) {
  return kernels::convert<double, T>(kernels::load_eight(x, count)) - mean;
}

template <class T, class Count>
Eight<T> normalized(const T* x, Count count, const RowStatistics& row) {
  return kernels::convert<T, double>(centered(x, count, row.mean) * row.rstd);
}

template <Centered center, class T>
RowStatistics statistics_of(const T* x, std::int64_t n, double eps) {
  double mean = 0;
  if constexpr (center == Centered::yes) {
    Eight<double> sum = {};
    kernels::for_each_eight(n, [&](std::int64_t i, auto count) { sum += centered(x + i, count, 0); });
    mean = kernels::sum_of_lanes(sum) / static_cast<double>(n);
  }
  Eight<double> squares = {};
  kernels::for_each_eight(n, [&](std::int64_t i, auto count) {
    const Eight<double> c = kernels::first_lanes(centered(x + i, count, mean), count);
    squares += c * c;
  });
  return {mean, 1 / std::sqrt(kernels::sum_of_lanes(squares) / static_cast<double>(n) + eps)};
}

/// The elements of a gain or bias, or null if the layer has none.
template <class T>
const T* data_or_null(const Tensor& parameter) {
  return parameter.defined() ? parameter.data<T>() : nullptr;
}

/// The part of a gain that belongs to one part of a row; a layer without one takes 1.
template <class T, class Count>
Eight<T> gain_of(const T* gain, std::int64_t i, Count count) {
  return gain ? kernels::load_eight(gain + i, count) : Eight<T>{} + T(1);
}

/// The normalized rows times the gain, plus the bias; either may be undefined. Fills `statistics` (rows, 2)
/// with the mean and rstd of every row.
template <Centered center>
Tensor norm_value(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps,
                  const Tensor& statistics) {
  Tensor y = empty(x.shape(), x.dtype());
  const Rows rows(x.shape());
  auto* saved = reinterpret_cast<RowStatistics*>(fresh_data<double>(statistics));
  dispatch(x.dtype(), [&, flat = row_major(x), gains = row_major(gain), biases = row_major(bias)]<class T>() {
    const T* scale = data_or_null<T>(gains);
    const T* shift = data_or_null<T>(biases);
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      const T* in = flat.template data<T>() + row * n;
      T* out = fresh_data<T>(y) + row * n;
      saved[row] = statistics_of<center>(in, n, eps);
      kernels::for_each_eight(n, [&](std::int64_t i, auto count) {
        Eight<T> value = normalized(in + i, count, saved[row]) * gain_of(scale, i, count);
        if (shift) value += kernels::load_eight(shift + i, count);
        kernels::store_eight(value, out + i, count);
      });
    });
  });
  return y;
}

// With g = dy gain, y the normalized row and <> the average over it: dx = rstd (g - <g> - y <g y>), where <g>
// comes from centering.
template <Centered center, class T>
void norm_row_backward(const T* x, const T* gain, const T* dy, const RowStatistics& row, std::int64_t n,
                       T* dx) {
  Eight<double> sum_g = {}, sum_gy = {};
  kernels::for_each_eight(n, [&](std::int64_t i, auto count) {
    const Eight<T> g = kernels::load_eight(dy + i, count) * gain_of(gain, i, count);
    const Eight<T> gy = g * normalized(x + i, count, row);
    if constexpr (center == Centered::yes) sum_g += kernels::convert<double, T>(g);
    sum_gy += kernels::convert<double, T>(gy);
  });
  const T mean_g = static_cast<T>(kernels::sum_of_lanes(sum_g) / static_cast<double>(n));
  const T mean_gy = static_cast<T>(kernels::sum_of_lanes(sum_gy) / static_cast<double>(n));
  kernels::for_each_eight(n, [&](std::int64_t i, auto count) {
    const Eight<T> g = kernels::load_eight(dy + i, count) * gain_of(gain, i, count);
    const Eight<T> y = normalized(x + i, count, row);
    kernels::store_eight((g - mean_g - y * mean_gy) * static_cast<T>(row.rstd), dx + i, count);
  });
}

template <Centered center>
Tensor norm_dx(const Tensor& x, const Tensor& gain, const Tensor& statistics, const Tensor& dy) {
  Tensor dx = empty(x.shape(), x.dtype());
  const Rows rows(x.shape());
  const auto* saved = reinterpret_cast<const RowStatistics*>(statistics.data<double>());
  dispatch(x.dtype(), [&, flat = row_major(x), gains = row_major(gain), upstream = row_major(dy)]<class T>() {
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      norm_row_backward<center>(flat.template data<T>() + row * n, data_or_null<T>(gains),
                                upstream.template data<T>() + row * n, saved[row], n,
                                fresh_data<T>(dx) + row * n);
    });
  });
  return dx;
}

// The sum of dy y over rows. Rows are cut into chunks whose size depends on the shape alone, and the sums of
// chunks are added in order.
template <class T>
void sum_dgain(const T* x, const RowStatistics* saved, const T* dy, const Rows& rows, T* dgain) {
  const std::int64_t n = rows.length;
  const std::int64_t chunk = std::max<std::int64_t>(1, kernels::elements_per_chunk / n);
  std::vector<double> sums(static_cast<std::size_t>((rows.count + chunk - 1) / chunk * n));
  kernels::parallel_for(rows.count, chunk, [&](std::int64_t begin, std::int64_t end) {
    kernels::for_each_eight(n, [&](std::int64_t i, auto count) {
      Eight<double> sum = {};
      for (std::int64_t row = begin; row < end; ++row) {
        const Eight<T> y = normalized(x + row * n + i, count, saved[row]);
        const Eight<T> product = kernels::load_eight(dy + row * n + i, count) * y;
        sum += kernels::convert<double, T>(product);
      }
      kernels::store_eight(sum, sums.data() + begin / chunk * n + i, count);
    });
  });
  for (std::int64_t i = 0; i < n; ++i) {
    double total = 0;
    for (std::int64_t at = i; at < std::ssize(sums); at += n) total += sums[static_cast<std::size_t>(at)];
    dgain[i] = static_cast<T>(total);
  }
}

inline Tensor norm_dgain(const Tensor& x, const Tensor& statistics, const Tensor& dy) {
  const Rows rows(x.shape());
  Tensor dgain = empty({rows.length}, x.dtype());
  const auto* saved = reinterpret_cast<const RowStatistics*>(statistics.data<double>());
  dispatch(x.dtype(), [&, flat = row_major(x), upstream = row_major(dy)]<class T>() {
    sum_dgain(flat.template data<T>(), saved, upstream.template data<T>(), rows, fresh_data<T>(dgain));
  });
  return dgain;
}

inline void check_norm_eps(const char* op, double eps) {
  if (eps >= 0) return;
  fail<ValueError>("[{}] eps {}: it is added to a mean of squares, so it can't be negative", op, eps);
}

inline void check_norm_input(const char* op, const Tensor& x) {
  if (x.rank() > 0 && x.shape().back() > 0) return;
  fail<ShapeError>("[{}] x {} has no channels along its last axis", op, to_string(x.shape()));
}

/// Whether a gain or bias, if there is one, fits x.
inline void check_norm_parameter(const char* op, const Tensor& x, const char* name, const Tensor& parameter) {
  if (!parameter.defined()) return;
  check_same_dtype(op, x, parameter);
  if (parameter.shape() == Shape{x.shape().back()}) return;
  fail<ShapeError>("[{}] {} has shape {}, but x {} needs ({},)", op, name, to_string(parameter.shape()),
                   to_string(x.shape()), x.shape().back());
}

}  // namespace fovea::detail
