#include "autograd/kernels/gelu.h"
#include "autograd/kernels/logistic.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reference.h"

namespace fovea {

using detail::Block;
using detail::map_binary;
using detail::map_unary;
using detail::multiply_no_nan;
using detail::unary_op;
using kernels::density_at_0;
using kernels::gelu_cubic;
using kernels::gelu_linear;

// The derivative of each function is an op with a kernel of its own, and so may be differentiated itself.
// Most formulas would cancel where a function saturates: 1 - sigmoid(x), 1 - tanh(x)^2 and so on.
namespace {

// s''(x) = -s'(x) tanh(x / 2).
Tensor sigmoid_slope(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::sigmoid_slope(v); };
  return unary_op("sigmoid_slope", x, value, In::x,
                  [](const Tensor& x) { return sigmoid_slope(x) * tanh(-0.5 * x); });
}

// The derivative is s'(x) (2 - x tanh(x / 2)).
Tensor silu_slope(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::silu_slope(v); };
  return unary_op("silu_slope", x, value, In::x,
                  [](const Tensor& x) { return multiply_no_nan(sigmoid_slope(x), 2.0 - x * tanh(0.5 * x)); });
}

// The derivative is phi(x) (2 - x^2).
Tensor gelu_slope(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::gelu_slope(v); };
  return unary_op("gelu_slope", x, value, In::x, [](const Tensor& x) {
    return multiply_no_nan(density_at_0 * detail::gaussian(x, 0.5), 2.0 - x * x);
  });
}

// s'(u(x)), the density of the logistic distribution at u(x) = linear x + cubic x^3.
Tensor gelu_tanh_density(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::gelu_tanh_density(v); };
  return unary_op("gelu_tanh_density", x, value, In::x, [](const Tensor& x) {
    const Tensor square = x * x;
    const Tensor u = x * (gelu_linear + gelu_cubic * square);
    return multiply_no_nan(gelu_tanh_density(x), tanh(-0.5 * u) * (gelu_linear + 3 * gelu_cubic * square));
  });
}

// The derivative of s(u) + x u' s'(u) is s'(u) (2 u' + x u'' - x u'^2 tanh(u / 2)).
Tensor gelu_tanh_slope(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::gelu_tanh_slope(v); };
  return unary_op("gelu_tanh_slope", x, value, In::x, [](const Tensor& x) {
    const Tensor square = x * x;
    const Tensor u = x * (gelu_linear + gelu_cubic * square);
    const Tensor u1 = gelu_linear + 3 * gelu_cubic * square;
    const Tensor terms = 2 * gelu_linear + 12 * gelu_cubic * square - x * (u1 * u1) * tanh(0.5 * u);
    return multiply_no_nan(gelu_tanh_density(x), terms);
  });
}

}  // namespace

Tensor sigmoid(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::sigmoid(v); };
  return unary_op("sigmoid", x, value, In::x, sigmoid_slope);
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
                  if (recording()) return {where(saved[0] > 0.0, dy, 0.0)};
                  return {map_binary("relu", dy, saved[0], []<class T>(const Block<T>& g, const Block<T>& y) {
                    Block<T> dx;
                    for (int i = 0; i < kernels::block_size; ++i) dx[i] = y[i] > 0 ? g[i] : T(0);
                    return dx;
                  })};
                });
}

Tensor silu(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::silu(v); };
  return unary_op("silu", x, value, In::x, silu_slope);
}

Tensor gelu(const Tensor& x, const GeluOptions& options) {
  if (options.tanh) {
    constexpr auto value = [](const auto& v) { return kernels::gelu_tanh(v); };
    return unary_op("gelu", x, value, In::x, gelu_tanh_slope);
  }
  constexpr auto value = [](const auto& v) { return kernels::gelu(v); };
  return unary_op("gelu", x, value, In::x, gelu_slope);
}

namespace reference {

namespace {

// Phi(x), the cumulative distribution function of N(0, 1).
Tensor normal_cdf(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::normal_cdf(v); };
  return unary_op("normal_cdf", x, value, In::x,
                  [](const Tensor& x) { return density_at_0 * detail::gaussian(x, 0.5); });
}

// x gate(x), for a gate that is 0 far below 0 and 1 far above it. There x may be infinite.
template <class Gate>
Tensor gated(const Tensor& x, const Gate& gate) {
  const Tensor limited = clamp(x, -1000, 1000);
  return where(x > 1000.0, x, limited * gate(limited));
}

}  // namespace

Tensor silu(const Tensor& x) {
  return gated(x, [](const Tensor& v) { return fovea::sigmoid(v); });
}

Tensor gelu(const Tensor& x, const GeluOptions& options) {
  if (!options.tanh) return gated(x, normal_cdf);
  return gated(x, [](const Tensor& v) { return fovea::sigmoid(gelu_linear * (v + 0.044715 * (v * v * v))); });
}

}  // namespace reference
}  // namespace fovea
