#include <algorithm>
#include <cmath>
#include <numbers>

#include "cases/accuracy.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

// The logistic function s(x) = 1 / (1 + exp(-x)).
template <class T>
T exact_logistic(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <class T>
T exact_logistic_slope(T x) {
  const T e = std::exp(-std::abs(x));
  return e / ((1 + e) * (1 + e));
}
// log(1 + exp(x)).
template <class T>
T exact_softplus(T x) {
  return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x)));
}

// Phi(x) and phi(x) of N(0, 1).
template <class T>
T exact_normal_cdf(T x) {
  const T z = -x / std::numbers::sqrt2_v<T>;
  const T y = std::erfc(z) / 2;
  if (!(z > 1 && z < 100)) return y;
  // Far below 0 this is nearly exp(-x^2 / 2), so what was lost by rounding z counts.
  const T square = x * x / 2;
  return y * (1 + (std::fma(z, z, -square) - std::fma(x, x / 2, -square)));
}
template <class T>
T exact_normal_density(T x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<T>);
}

// u(x), the argument of the logistic function in GELU's form with tanh, and its slope.
template <class T>
T exact_gelu_argument(T x) {
  return std::sqrt(8 / std::numbers::pi_v<T>) * (x + static_cast<T>(0.044715L) * x * x * x);
}
template <class T>
T exact_gelu_argument_slope(T x) {
  return std::sqrt(8 / std::numbers::pi_v<T>) * (1 + 3 * static_cast<T>(0.044715L) * x * x);
}

// x gate(x), for a gate that is 0 far below 0 and 1 far above it; and the slope of such a function.
template <class T, class Gate>
T exact_gated(T x, Gate gate) {
  return x < -1000 ? -T(0) : x > 1000 ? x : x * gate(x);
}
template <class T, class Slope>
T exact_gated_slope(T x, Slope slope) {
  return x < -1000 ? T(0) : x > 1000 ? T(1) : slope(x);
}

Tensor ones_like(const Tensor& x) { return ones(x.shape(), x.dtype()); }

// The cross-entropy of the logits (x, 0), where the target is x.
Tensor cross_entropy_of_two(const Tensor& x) {
  const Tensor logits = stack({x, zeros(x.shape(), x.dtype())}, 1);
  const Indices first(x.shape(), [n = x.numel()](std::int64_t* ids) { std::fill_n(ids, n, 0); });
  return cross_entropy(logits, first, {.reduction = Reduction::none}).loss;
}

// Adds rows to the table. `value` and `slope` are called with double and with long double.
struct Table {
  std::vector<ElementwiseFunction> rows;

  template <class Value, class Slope>
  void add(const char* name, Tensor (*of)(const Tensor&), Value value, Slope slope) {
    rows.push_back({name, of, value, slope, value, slope});
  }
};

void add_arithmetic(Table& table) {
  table.add(
      "-x", neg, [](auto x) { return -x; }, []<class T>(T) { return T(-1); });
  table.add(
      "x / 3", [](const Tensor& x) { return x / 3; }, [](auto x) { return x / 3; },
      []<class T>(T) { return T(1) / 3; });
  table.add(
      "1 / x", [](const Tensor& x) { return 1 / x; }, [](auto x) { return 1 / x; },
      [](auto x) { return -1 / (x * x); });
  table.add(
      "abs", abs, [](auto x) { return std::abs(x); },
      []<class T>(T x) {
        return T(x > 0 ? 1 : x < 0 ? -1 : 0);
      });
  table.add(
      "relu", relu, []<class T>(T x) { return x <= 0 ? T(0) : x; },
      []<class T>(T x) { return T(x > 0 ? 1 : 0); });
  table.add(
      "maximum(x, 1)", [](const Tensor& x) { return maximum(x, ones({}, x.dtype())); },
      []<class T>(T x) { return x <= 1 ? T(1) : x; },
      []<class T>(T x) {
        return T(x > 1 ? 1 : x < 1 ? 0 : 0.5);
      });
  table.add(
      "clamp(x, -1, 2)", [](const Tensor& x) { return clamp(x, -1, 2); },
      []<class T>(T x) { return x < -1  ? T(-1)
                                : x > 2 ? T(2)
                                        : x; },
      []<class T>(T x) { return T(x >= -1 && x <= 2 ? 1 : 0); });
}

void add_powers(Table& table) {
  table.add(
      "sqrt", sqrt, [](auto x) { return std::sqrt(x); },
      []<class T>(T x) { return x == 0 ? T(0) : 1 / (2 * std::sqrt(x)); });
  table.add(
      "rsqrt", rsqrt, [](auto x) { return 1 / std::sqrt(x); },
      [](auto x) { return -1 / std::sqrt(x) / std::sqrt(x) / std::sqrt(x) / 2; });
  table.add(
      "x^2", [](const Tensor& x) { return pow(x, 2); }, [](auto x) { return x * x; },
      [](auto x) { return 2 * x; });
  table.add(
      "x^3", [](const Tensor& x) { return pow(x, 3); }, [](auto x) { return x * x * x; },
      [](auto x) { return 3 * x * x; });
  table.add(
      "x^(1/3)", [](const Tensor& x) { return pow(x, 1.0 / 3); },
      []<class T>(T x) { return std::pow(x, T(1.0 / 3)); },
      []<class T>(T x) { return T(1.0 / 3) * std::pow(x, T(1.0 / 3 - 1)); });
}

void add_exponentials(Table& table) {
  table.add(
      "exp", exp, [](auto x) { return std::exp(x); }, [](auto x) { return std::exp(x); });
  table.add(
      "log", log, [](auto x) { return std::log(x); }, [](auto x) { return 1 / x; });
  table.add(
      "tanh", tanh, [](auto x) { return std::tanh(x); },
      [](auto x) { return 4 * exact_logistic_slope(2 * x); });
  table.add(
      "sigmoid", sigmoid, [](auto x) { return exact_logistic(x); },
      [](auto x) { return exact_logistic_slope(x); });
  table.add(
      "erf", erf, [](auto x) { return std::erf(x); },
      []<class T>(T x) { return 2 / std::sqrt(std::numbers::pi_v<T>) * std::exp(-x * x); });
}

void add_activations(Table& table) {
  table.add(
      "silu", silu, []<class T>(T x) { return exact_gated(x, exact_logistic<T>); },
      []<class T>(T x) {
        return exact_gated_slope(x, [](T v) { return exact_logistic(v) + v * exact_logistic_slope(v); });
      });
  table.add(
      "gelu", [](const Tensor& x) { return gelu(x); },
      []<class T>(T x) { return exact_gated(x, exact_normal_cdf<T>); },
      []<class T>(T x) {
        return exact_gated_slope(x, [](T v) { return exact_normal_cdf(v) + v * exact_normal_density(v); });
      });
  table.add(
      "gelu, tanh form", [](const Tensor& x) { return gelu(x, {.tanh = true}); },
      []<class T>(T x) { return exact_gated(x, [](T v) { return exact_logistic(exact_gelu_argument(v)); }); },
      []<class T>(T x) {
        return exact_gated_slope(x, [](T v) {
          const T u = exact_gelu_argument(v);
          return exact_logistic(u) + v * exact_gelu_argument_slope(v) * exact_logistic_slope(u);
        });
      });
}

void add_losses(Table& table) {
  table.add(
      "mean squared error, target 1",
      [](const Tensor& x) { return mean_squared_error(x, ones_like(x), Reduction::none); },
      [](auto x) { return (x - 1) * (x - 1); }, [](auto x) { return 2 * (x - 1); });
  table.add(
      "binary cross-entropy, target 1",
      [](const Tensor& x) {
        return binary_cross_entropy_with_logits(x, ones_like(x), {.reduction = Reduction::none});
      },
      [](auto x) { return exact_softplus(-x); }, [](auto x) { return -exact_logistic(-x); });
  table.add(
      "cross-entropy of (x, 0), target x", cross_entropy_of_two, [](auto x) { return exact_softplus(-x); },
      [](auto x) { return -exact_logistic(-x); });
}

}  // namespace

const std::vector<ElementwiseFunction>& elementwise_functions() {
  static const std::vector<ElementwiseFunction> rows = [] {
    Table table;
    add_arithmetic(table);
    add_powers(table);
    add_exponentials(table);
    add_activations(table);
    add_losses(table);
    return table.rows;
  }();
  return rows;
}

}  // namespace fovea
