#include "cases/accuracy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/base/parallel.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

template <class T>
constexpr T pi = std::numbers::pi_v<T>;

// The logistic function and GELU, with their limits at infinity.
template <class T>
T logistic(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <class T>
T logistic_slope(T x) {
  const T e = std::exp(-std::abs(x));
  return e / ((1 + e) * (1 + e));
}
template <class T>
T normal_cdf(T x) {
  const T z = -x / std::numbers::sqrt2_v<T>;
  const T y = std::erfc(z) / 2;
  if (!(z > 1 && z < 100)) return y;
  // Far below 0 this is nearly exp(-x^2 / 2), so what was lost by rounding z counts.
  const T square = x * x / 2;
  return y * (1 + (std::fma(z, z, -square) - std::fma(x, x / 2, -square)));
}
template <class T>
T normal_density(T x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * pi<T>);
}
// The argument of the logistic function in GELU's form with tanh.
template <class T>
T gelu_argument(T x) {
  return std::sqrt(8 / pi<T>) * (x + static_cast<T>(0.044715L) * x * x * x);
}

// x gate(x): the gate is 0 far below 0 and 1 far above it.
template <class T, class Gate>
T gated(T x, Gate gate) {
  return x < -1000 ? -T(0) : x > 1000 ? x : x * gate(x);
}
template <class T, class Slope>
T slope_of_gated(T x, Slope slope) {
  return x < -1000 ? T(0) : x > 1000 ? T(1) : slope(x);
}

template <class Value, class Slope>
constexpr ElementwiseFunction function(const char* name, Tensor (*of)(const Tensor&), Value value,
                                       Slope slope) {
  return {name, of, value, slope, value, slope};
}

const ElementwiseFunction functions[] = {
    function(
        "exp", exp, [](auto x) { return std::exp(x); }, [](auto x) { return std::exp(x); }),
    function(
        "log", log, [](auto x) { return std::log(x); }, [](auto x) { return 1 / x; }),
    function(
        "sqrt", sqrt, [](auto x) { return std::sqrt(x); },
        [](auto x) { return x == 0 ? decltype(x)(0) : 1 / (2 * std::sqrt(x)); }),
    function(
        "rsqrt", rsqrt, [](auto x) { return 1 / std::sqrt(x); },
        [](auto x) { return -1 / std::sqrt(x) / std::sqrt(x) / std::sqrt(x) / 2; }),
    function(
        "tanh", tanh, [](auto x) { return std::tanh(x); }, [](auto x) { return 4 * logistic_slope(2 * x); }),
    function(
        "erf", erf, [](auto x) { return std::erf(x); },
        [](auto x) { return 2 / std::sqrt(pi<decltype(x)>) * std::exp(-x * x); }),
    function(
        "sigmoid", sigmoid, [](auto x) { return logistic(x); }, [](auto x) { return logistic_slope(x); }),
    function(
        "silu", silu, [](auto x) { return gated(x, [](auto v) { return logistic(v); }); },
        [](auto x) { return slope_of_gated(x, [](auto v) { return logistic(v) + v * logistic_slope(v); }); }),
    function(
        "gelu", [](const Tensor& x) { return gelu(x); },
        [](auto x) { return gated(x, [](auto v) { return normal_cdf(v); }); },
        [](auto x) {
          return slope_of_gated(x, [](auto v) { return normal_cdf(v) + v * normal_density(v); });
        }),
    function(
        "gelu, tanh form", [](const Tensor& x) { return gelu(x, {.tanh = true}); },
        [](auto x) { return gated(x, [](auto v) { return logistic(gelu_argument(v)); }); },
        [](auto x) {
          return slope_of_gated(x, []<class T>(T v) {
            const T u = gelu_argument(v);
            const T u1 = std::sqrt(8 / pi<T>) * (1 + 3 * static_cast<T>(0.044715L) * v * v);
            return logistic(u) + v * u1 * logistic_slope(u);
          });
        }),
    function(
        "relu", relu, [](auto x) { return x <= 0 ? decltype(x)(0) : x; },
        [](auto x) { return x > 0 ? decltype(x)(1) : decltype(x)(0); }),
    function(
        "abs", abs, [](auto x) { return std::abs(x); },
        [](auto x) { return decltype(x)((x > 0) - (x < 0)); }),
    function(
        "x^2", [](const Tensor& x) { return pow(x, 2); }, [](auto x) { return x * x; },
        [](auto x) { return 2 * x; }),
    function(
        "x^3", [](const Tensor& x) { return pow(x, 3); }, [](auto x) { return x * x * x; },
        [](auto x) { return 3 * x * x; }),
    function(
        "1 / x", [](const Tensor& x) { return 1.0 / x; }, [](auto x) { return 1 / x; },
        [](auto x) { return -1 / (x * x); }),
    function(
        "binary cross-entropy, target 1",
        [](const Tensor& x) {
          return binary_cross_entropy_with_logits(x, ones(x.shape(), x.dtype()),
                                                  {.reduction = Reduction::none});
        },
        [](auto x) { return (x < 0 ? -x : 0) + std::log1p(std::exp(-std::abs(x))); },
        [](auto x) { return -logistic(-x); }),
};

struct Sums {
  std::int64_t count = 0;
  double total = 0;
  double worst = 0;
  double worst_at = 0;
};

void add(Sums& sums, double error, double at) {
  ++sums.count;
  sums.total += error;
  if (std::abs(error) > sums.worst) {
    sums.worst = std::abs(error);
    sums.worst_at = at;
  }
}

// Compares values at the arguments; a part of them on each thread.
template <class T, class Exact>
void compare(const std::vector<double>& x, const std::vector<double>& y, Exact exact, Sums& sums) {
  constexpr std::int64_t chunk = 4096;
  const auto n = std::ssize(x);
  std::vector<Sums> parts(static_cast<std::size_t>((n + chunk - 1) / chunk));
  kernels::parallel_for(n, chunk, [&](std::int64_t begin, std::int64_t end) {
    Sums& part = parts[static_cast<std::size_t>(begin / chunk)];
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      add(part, ulps_between<T>(y[i], exact(x[i])), x[i]);
    }
  });
  for (const Sums& part : parts) {
    sums.count += part.count;
    sums.total += part.total;
    if (part.worst > sums.worst) {
      sums.worst = part.worst;
      sums.worst_at = part.worst_at;
    }
  }
}

// Compares the function at argument(0), ..., argument(count - 1).
template <class T, class Argument, class Exact>
Accuracy measure(const ElementwiseFunction& function, std::int64_t count, Argument argument, Exact exact) {
  constexpr std::int64_t at_a_time = 1 << 20;
  const NoGrad off;
  Sums sums;
  std::vector<double> x;
  for (std::int64_t begin = 0; begin < count; begin += at_a_time) {
    x.clear();
    for (std::int64_t i = begin; i < std::min(count, begin + at_a_time); ++i) x.push_back(argument(i));
    const Tensor at = from_values(x, {std::ssize(x)}, sizeof(T) == 4 ? f32 : f64);
    compare<T>(x, function.of(at).to_vector(), exact, sums);
  }
  return {sums.count, sums.total / static_cast<double>(sums.count), sums.worst, sums.worst_at};
}

}  // namespace

std::span<const ElementwiseFunction> elementwise_functions() { return functions; }

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
  return measure<float>(function, 2 * positive, argument, function.value);
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
  return measure<double>(function, count, argument, function.long_value);
}

}  // namespace fovea
