#include "cases/accuracy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "autograd/base/parallel.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

struct ErrorSums {
  std::int64_t count = 0;
  double total = 0;
  double worst = 0;
  double worst_at = 0;

  void add(double error, double at) {
    ++count;
    total += error;
    if (std::abs(error) > worst) {
      worst = std::abs(error);
      worst_at = at;
    }
  }
  void add(const ErrorSums& part) {
    count += part.count;
    total += part.total;
    if (part.worst > worst) {
      worst = part.worst;
      worst_at = part.worst_at;
    }
  }
};

// Compares values at the arguments; a part of them on each thread.
template <class T, class Exact>
void compare_values(const std::vector<double>& x, const std::vector<double>& y, Exact exact,
                    ErrorSums& sums) {
  constexpr std::int64_t chunk = 4096;
  const auto n = std::ssize(x);
  std::vector<ErrorSums> parts(static_cast<std::size_t>((n + chunk - 1) / chunk));
  kernels::parallel_for(n, chunk, [&](std::int64_t begin, std::int64_t end) {
    ErrorSums& part = parts[static_cast<std::size_t>(begin / chunk)];
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      part.add(ulps_between<T>(y[i], exact(x[i])), x[i]);
    }
  });
  for (const ErrorSums& part : parts) sums.add(part);
}

// Compares the function at argument(0), ..., argument(count - 1).
template <class T, class Argument, class Exact>
Accuracy measure_accuracy(const ElementwiseFunction& function, std::int64_t count, Argument argument,
                          Exact exact) {
  constexpr std::int64_t at_a_time = 1 << 20;
  const NoGrad off;
  ErrorSums sums;
  std::vector<double> x;
  for (std::int64_t begin = 0; begin < count; begin += at_a_time) {
    x.clear();
    for (std::int64_t i = begin; i < std::min(count, begin + at_a_time); ++i) x.push_back(argument(i));
    const Tensor at = from_values(x, {std::ssize(x)}, sizeof(T) == 4 ? f32 : f64);
    compare_values<T>(x, function.of(at).to_vector(), exact, sums);
  }
  return {sums.count, sums.total / static_cast<double>(sums.count), sums.worst, sums.worst_at};
}

}  // namespace

template <class T>
double ulps_between(double found, long double exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(found)) return std::isnan(exact) && std::isnan(found) ? 0 : INFINITY;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(found)) return static_cast<double>(rounded) == found ? 0 : INFINITY;
  int exponent = Limits::min_exponent;
  if (std::abs(exact) >= static_cast<long double>(Limits::min())) std::frexp(exact, &exponent);
  const long double ulp = std::ldexp(1.0L, exponent - Limits::digits);
  const auto error = static_cast<double>((static_cast<long double>(found) - exact) / ulp);
  return exact < 0 ? -error : error;
}
template double ulps_between<float>(double, long double);
template double ulps_between<double>(double, long double);

Accuracy accuracy_in_f32(const ElementwiseFunction& function, std::int64_t step) {
  constexpr std::uint32_t sign = std::uint32_t{1} << 31;
  const std::int64_t positive =
      std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity()) / step + 1;
  const auto argument = [=](std::int64_t i) {
    const auto bits = static_cast<std::uint32_t>(i / 2 * step);
    return static_cast<double>(std::bit_cast<float>(i % 2 == 0 ? bits : bits | sign));
  };
  return measure_accuracy<float>(function, 2 * positive, argument, function.value);
}

Accuracy accuracy_in_f64(const ElementwiseFunction& function, std::int64_t count) {
  const auto infinity = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
  const std::uint64_t step = infinity / (static_cast<std::uint64_t>(count) / 4);
  const auto argument = [=](std::int64_t i) {
    const std::int64_t half = i / 2;
    if (i % 2 == 0) return -40 + 160 * (static_cast<double>(half) + 0.3) / static_cast<double>(count);
    const auto magnitude = std::bit_cast<double>(static_cast<std::uint64_t>(half / 2) * step);
    return half % 2 == 0 ? magnitude : -magnitude;
  };
  return measure_accuracy<double>(function, count, argument, function.long_value);
}

}  // namespace fovea
