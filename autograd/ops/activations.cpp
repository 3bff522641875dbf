#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/kernels/vector_math.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reference.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::Block;
using detail::map_unary;
using detail::multiply_no_nan;

namespace {

// An activation whose derivative has a kernel of its own, `slope`. Where the gradient is differentiated
// itself, the composed formula's gradient takes its place.
template <class Value, class Slope, class Composed>
Tensor activation(const char* name, const Tensor& x, Value value, Slope slope, Composed composed) {
  const Tensor y = map_unary(x, value);
  return record(name, y, {x}, {x},
                [slope, composed](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor x = saved[0];
                  if (!recording()) return {multiply_no_nan(dy, map_unary(x, slope))};
                  return {grad({composed(x)}, {x}, {.gradients = {dy}, .create_graph = true})[0]};
                });
}

// GELU by tanh is x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3). Where x is negative, 1 + tanh(u)
// would be left with the rounding of 1.
constexpr double sqrt_8_over_pi = 1.5957691216057308;
constexpr double gelu_cubic = 0.044715;

// exp(-2 u). Eigen's packets are faster than our exp, but stop a little below infinity: GELU would not be 0.
template <class T>
Block<T> gelu_exp(const Block<T>& x) {
  constexpr T highest = std::numeric_limits<T>::max_exponent * T(0.69);  // ln 2 is 0.693
  const Block<T> exponent = x * (T(-sqrt_8_over_pi) + T(-sqrt_8_over_pi * gelu_cubic) * x * x);
  Block<T> e = exponent.exp();
  kernels::for_each_lane(
      [&](int i) { e[i] = exponent[i] > highest ? std::numeric_limits<T>::infinity() : e[i]; });
  return e;
}

// x, or the nearest to it in [-24, 24]: beyond, the slope of GELU is 0 or 1 and powers of x may overflow. NaN
// stays.
template <class T>
Block<T> within_24(const Block<T>& x) {
  Block<T> result;
  kernels::for_each_lane([&](int i) { result[i] = x[i] > 24 ? T(24) : x[i] < -24 ? T(-24) : x[i]; });
  return result;
}

// phi(x), the density of N(0, 1).
template <class T>
Block<T> normal_density(const Block<T>& x) {
  return kernels::exp<T>(x * x * T(-0.5)) * T(0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
}

}  // namespace

Tensor sigmoid(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) { return kernels::sigmoid(v); });
  return record("sigmoid", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor y = saved[0];
                  return {multiply_no_nan(dy, y * (1.0 - y))};
                });
}

Tensor relu(const Tensor& x) {
  // Written so that a NaN stays one.
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) {
    Block<T> result;
    for (int i = 0; i < kernels::block_size; ++i) result[i] = v[i] <= 0 ? T(0) : v[i];
    return result;
  });
  return record("relu", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {where(saved[0] > 0.0, dy, 0.0)};
                });
}

Tensor silu(const Tensor& x) {
  return activation(
      "silu", x, []<class T>(const Block<T>& v) -> Block<T> { return v * kernels::sigmoid(v); },
      []<class T>(const Block<T>& v) -> Block<T> {
        const Block<T> s = kernels::sigmoid(v);
        return s * (1 + v * (1 - s));
      },
      reference::silu);
}

Tensor gelu(const Tensor& x, const GeluOptions& options) {
  if (options.tanh) {
    return activation(
        "gelu", x, []<class T>(const Block<T>& v) -> Block<T> { return v / (1 + gelu_exp(v)); },
        []<class T>(const Block<T>& x) -> Block<T> {
          // sigmoid(-2 u) is e s, right to rounding. Where e is infinite, s is 0 and the product does not
          // matter.
          const Block<T> v = within_24(x), e = gelu_exp(v), s = 1 / (1 + e);
          const Block<T> other = e.min(std::numeric_limits<T>::max()) * s;
          return s + s * other * v * (T(sqrt_8_over_pi) + T(3 * sqrt_8_over_pi * gelu_cubic) * v * v);
        },
        [](const Tensor& x) { return reference::gelu(x, {.tanh = true}); });
  }
  return activation(
      "gelu", x,
      []<class T>(const Block<T>& v) -> Block<T> {
        return T(0.5) * v * (1 + kernels::erf<T>(v * T(1 / std::numbers::sqrt2)));
      },
      []<class T>(const Block<T>& v) -> Block<T> {
        return T(0.5) * (1 + kernels::erf<T>(v * T(1 / std::numbers::sqrt2))) + v * normal_density(v);
      },
      [](const Tensor& x) { return reference::gelu(x); });
}

namespace reference {

Tensor silu(const Tensor& x) { return x * fovea::sigmoid(x); }

Tensor gelu(const Tensor& x, const GeluOptions& options) {
  if (options.tanh) return x * fovea::sigmoid(sqrt_8_over_pi * (x + gelu_cubic * (x * x * x)));
  return 0.5 * x * (1.0 + erf(x * (1 / std::numbers::sqrt2)));
}

}  // namespace reference
}  // namespace fovea
