#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/kernels/vector_math.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reference.h"

namespace fovea {

using detail::Block;
using detail::map_unary;
using detail::multiply_no_nan;

namespace {

// An activation whose derivative has a kernel of its own, `slope`. Where the gradient itself is to be
// differentiated, it is the gradient of the reference form.
template <class Value, class Slope, class Reference>
Tensor activation(const char* name, const Tensor& x, Value value, Slope slope, Reference reference) {
  const Tensor y = map_unary(x, value);
  return record(name, y, {x}, {x},
                [slope, reference](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor x = saved[0];
                  if (!recording()) return {multiply_no_nan(dy, map_unary(x, slope))};
                  return {grad({reference(x)}, {x}, {.gradients = {dy}, .create_graph = true})[0]};
                });
}

// The tanh form of GELU, x/2 (1 + tanh u) with u = sqrt(2 / pi) (x + 0.044715 x^3), is computed as
// x sigmoid(2 u): where x is far below 0, 1 + tanh u would be nothing but the rounding of 1.
constexpr double sqrt_8_over_pi = 1.5957691216057308;
constexpr double gelu_cubic = 0.044715;

// exp(-2 u), by Eigen, whose packets are faster here than kernels::exp. They saturate a little below
// infinity, so larger exponents are set to infinity, for which GELU is 0.
template <class T>
Block<T> gelu_exp(const Block<T>& x) {
  constexpr T highest = std::numeric_limits<T>::max_exponent * T(0.69);  // ln 2 is 0.693
  const Block<T> exponent = x * (T(-sqrt_8_over_pi) + T(-sqrt_8_over_pi * gelu_cubic) * x * x);
  Block<T> e = exponent.exp();
  kernels::for_each_lane(
      [&](int i) { e[i] = exponent[i] > highest ? std::numeric_limits<T>::infinity() : e[i]; });
  return e;
}

// x clamped to [-24, 24]. Beyond these bounds the slope of GELU is 0 or 1, and powers of x may overflow. NaN
// stays NaN.
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
  constexpr auto value = [](const auto& v) { return kernels::sigmoid(v); };
  return detail::unary_op("sigmoid", x, value, detail::In::y, [](const Tensor& y) { return y * (1.0 - y); });
}

// The gradient is chosen, not multiplied by 0, so that it is 0 also where dy is infinite.
Tensor relu(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) {
    Block<T> result;
    for (int i = 0; i < kernels::block_size; ++i) result[i] = v[i] <= 0 ? T(0) : v[i];  // NaN stays NaN
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
          // s = sigmoid(2 u), and 1 - s = e s without cancellation. Where e is infinite, s is 0, and any
          // finite number may stand for e.
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
