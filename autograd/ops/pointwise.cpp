#include <cmath>
#include <numbers>

#include "autograd/kernels/gelu.h"
#include "autograd/kernels/logistic.h"
#include "autograd/kernels/vector_math.h"
#include "autograd/ops/elementwise.h"

namespace fovea {

using detail::Block;
using detail::map_binary;
using detail::map_unary;
using detail::multiply_no_nan;
using detail::unary_op;

Tensor exp(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::exp(v); };
  return unary_op("exp", x, value, In::y, [](const Tensor& y) { return y; });
}

Tensor log(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::log(v); };
  return unary_op("log", x, value, In::x, [](const Tensor& x) { return 1.0 / x; });
}

Tensor sqrt(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::sqrt(v); };
  return unary_op("sqrt", x, value, In::y, [](const Tensor& y) { return where(y == 0.0, 0.0, 0.5 / y); });
}

Tensor rsqrt(const Tensor& x) {
  constexpr auto value = []<class T>(const Block<T>& v) -> Block<T> { return 1 / kernels::sqrt(v); };
  return unary_op("rsqrt", x, value, In::y, [](const Tensor& y) { return -0.5 * (y * y * y); });
}

Tensor tanh(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::tanh(v); };
  return unary_op("tanh", x, value, In::x, detail::tanh_slope);
}

// The derivative is -2 tanh(x) tanh'(x).
Tensor detail::tanh_slope(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::tanh_slope(v); };
  return unary_op("tanh_slope", x, value, In::x,
                  [](const Tensor& x) { return -2 * tanh(x) * tanh_slope(x); });
}

Tensor detail::gaussian(const Tensor& x, double factor) {
  const auto value = [factor](const auto& v) { return kernels::gaussian(v, factor); };
  return unary_op("gaussian", x, value, In::x, [factor](const Tensor& x) {
    return multiply_no_nan(gaussian(x, factor), -2 * factor * x);
  });
}

Tensor erf(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::erf(v); };
  return unary_op("erf", x, value, In::x,
                  [](const Tensor& x) { return 2 * std::numbers::inv_sqrtpi * detail::gaussian(x, 1); });
}

// The sign is chosen, not multiplied by, so that the gradient at 0 is 0 also where dy is infinite.
Tensor abs(const Tensor& x) {
  const Tensor y = map_unary(x, [](const auto& v) { return v.abs(); });
  return record("abs", y, {x}, {x},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor x = saved[0];
                  return {where(x > 0.0, dy, where(x < 0.0, -dy, 0.0))};
                });
}

// The case p = 2 is a product, since std::pow is slow. A p that f32 would round, such as 1/3, is taken in
// f64: its rounding is multiplied by ln x.
Tensor pow(const Tensor& x, double p) {
  const Tensor y = map_unary(x, [p]<class T>(const Block<T>& v) -> Block<T> {
    if (p == 2) return v * v;
    const T rounded = static_cast<T>(p);
    const bool is_exact = static_cast<double>(rounded) == p;
    Block<T> result;
    for (int i = 0; i < kernels::block_size; ++i) {
      result[i] = is_exact ? std::pow(v[i], rounded) : static_cast<T>(std::pow(static_cast<double>(v[i]), p));
    }
    return result;
  });
  return record("pow", y, {x}, {x},
                [p](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  if (p == 0) return {dy * 0.0};
                  if (p == 1) return {dy};
                  return {multiply_no_nan(dy, p * pow(saved[0], p - 1))};
                });
}

Tensor pow(const Tensor& a, const Tensor& b) {
  const Tensor y = map_binary("pow", a, b, []<class T>(const Block<T>& u, const Block<T>& v) {
    Block<T> result;
    for (int i = 0; i < kernels::block_size; ++i) result[i] = std::pow(u[i], v[i]);
    return result;
  });
  return record(
      "pow", y, {a, b}, {a, b, y}, [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) {
        const Tensor a = saved[0], b = saved[1];
        const auto of_a = [&] { return multiply_no_nan(dy, where(b == 0.0, 0.0, b * pow(a, b - 1.0))); };
        const auto of_b = [&] {
          // y ln a is 0 where y is and ln a is infinite.
          return multiply_no_nan(dy, where((a == 0.0) & (b >= 0.0), 0.0, multiply_no_nan(saved[2], log(a))));
        };
        return detail::broadcast_gradients(needs, of_a, of_b);
      });
}

}  // namespace fovea
