#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// What the slope of an elementwise op is a formula in: the input x or the output y.
enum class In { x, y };

namespace detail {

/// dy * local, except that an exact zero in dy stays zero where `local` is not finite, so that the branch
/// which `where` did not take sends no NaN back. It is an op, so it can be differentiated. Every rule that
/// multiplies by a local derivative uses it.
FOVEA_API Tensor multiply_no_nan(const Tensor& dy, const Tensor& local);

/// Calls f(begin, end) for parts of [0, n), on several threads.
FOVEA_API void for_each_part(std::int64_t n, const std::function<void(std::int64_t, std::int64_t)>& f);

/// Records y, computed from x element by element, with dy/dx = slope(x) or slope(y).
template <class Slope>
Tensor record_elementwise(const char* name, const Tensor& y, const Tensor& x, const Slope& slope, In in) {
  return record(name, y, {x}, {in == In::x ? x : y},
                [slope](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {multiply_no_nan(dy, slope(saved[0]))};
                });
}

}  // namespace detail

/// An op of one's own that maps every element by itself, y_i = value(x_i), from a line for its value and one
/// for its slope:
///
///   Tensor softplus(const Tensor& x) {
///     return elementwise("softplus", x, [](auto v) { return std::log1p(std::exp(v)); },
///                        [](const Tensor& x) { return sigmoid(x); });
///   }
///
/// `value` maps a number to a number, float or double as x has them, and is called on several threads.
/// `slope` maps x, or with In::y the output, to dy/dx. It is made of ops, which may be elementwise ops of
/// one's own, so derivatives of any order follow; it captures no Tensor. A cotangent of exactly zero stays
/// zero where the slope is not finite. `name` is a string literal. examples/my_op.cpp checks one.
///
/// Shapes: x (...) -> (...).
template <class Value, class Slope>
Tensor elementwise(const char* name, const Tensor& x, const Value& value, const Slope& slope, In in = In::x) {
  static_assert(std::is_invocable_r_v<double, const Value&, double> &&
                    std::is_invocable_r_v<float, const Value&, float>,
                "elementwise: the value must map a number to a number: [](auto v) { return v * v; }");
  static_assert(
      std::is_invocable_r_v<Tensor, const Slope&, const Tensor&>,
      "elementwise: the slope must map a Tensor to a Tensor: [](const Tensor& x) { return 2 * x; }");
  const Tensor source = contiguous(x.detach());
  Tensor y = empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = source.data<T>();
    T* to = y.mutable_data<T>();
    detail::for_each_part(y.numel(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(value(from[i]));
    });
  });
  return detail::record_elementwise(name, y, x, slope, in);
}

}  // namespace fovea
