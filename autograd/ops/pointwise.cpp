#include <cmath>
#include <numbers>

#include "autograd/kernels/vector_math.h"
#include "autograd/ops/elementwise.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::Block;
using detail::map_binary;
using detail::map_unary;
using detail::multiply_no_nan;

Tensor exp(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) { return kernels::exp(v); });
  return record("exp", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {multiply_no_nan(dy, saved[0])};
                });
}

Tensor log(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) { return kernels::log(v); });
  return record("log", y, {x}, {x},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {multiply_no_nan(dy, 1.0 / saved[0])};
                });
}

Tensor sqrt(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) -> Block<T> { return v.sqrt(); });
  return record("sqrt", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor y = saved[0];
                  return {multiply_no_nan(dy, where(y == 0.0, 0.0, 0.5 / y))};
                });
}

Tensor rsqrt(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) -> Block<T> { return 1 / v.sqrt(); });
  return record("rsqrt", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor y = saved[0];
                  return {multiply_no_nan(dy, -0.5 * (y * y * y))};
                });
}

Tensor abs(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) -> Block<T> { return v.abs(); });
  return record("abs", y, {x}, {x},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor x = saved[0];
                  return {where(x > 0.0, dy, where(x < 0.0, -dy, 0.0))};
                });
}

Tensor pow(const Tensor& x, double p) {
  const Tensor y = map_unary(x, [p]<class T>(const Block<T>& v) -> Block<T> {
    if (p == 2) return v * v;
    Block<T> result;
    for (int i = 0; i < kernels::block_size; ++i) result[i] = std::pow(v[i], static_cast<T>(p));
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
  return record("pow", y, {a, b}, {a, b, y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  const Tensor a = saved[0], b = saved[1];
                  Gradients gradients(2, {});
                  if (needs[0]) {
                    const Tensor local = where(b == 0.0, 0.0, b * pow(a, b - 1.0));
                    gradients[0] = sum_to(multiply_no_nan(dy, local), needs.shape(0));
                  }
                  if (needs[1]) {
                    const Tensor local = where((a == 0.0) & (b >= 0.0), 0.0, saved[2] * log(a));
                    gradients[1] = sum_to(multiply_no_nan(dy, local), needs.shape(1));
                  }
                  return gradients;
                });
}

Tensor tanh(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) { return kernels::tanh(v); });
  return record("tanh", y, {x}, {y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor y = saved[0];
                  return {multiply_no_nan(dy, 1.0 - y * y)};
                });
}

Tensor erf(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) { return kernels::erf(v); });
  return record("erf", y, {x}, {x},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor x = saved[0];
                  return {multiply_no_nan(dy, 2 * std::numbers::inv_sqrtpi * exp(-(x * x)))};
                });
}

}  // namespace fovea
