#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/ops/elementwise.h"

namespace fovea {

using detail::Block;
using detail::map_binary;
using detail::map_unary;

namespace {

// Whether test(a, b) holds, elementwise and with broadcasting.
template <class Test>
Bool compare(const char* name, const Tensor& a, const Tensor& b, Test test) {
  detail::check_same_dtype(name, a, b);
  const Shape shape = broadcast_shapes(name, a.shape(), b.shape());
  numel(shape);  // throws if the sizes are too large for the loops too
  const kernels::Loops<3> loops = detail::binary_loops(shape, a, b);
  return Bool(shape, [&](std::uint8_t* out) {
    dispatch(a.dtype(), [&]<class T>() {
      kernels::map(
          loops, out,
          [test](const Block<T>& u, const Block<T>& v) {
            Block<std::uint8_t> result;
            for (int i = 0; i < kernels::block_size; ++i) result[i] = test(u[i], v[i]);
            return result;
          },
          a.data<T>(), b.data<T>());
    });
  });
}

// Elements of a where the condition holds, and of b elsewhere, with broadcasting.
Tensor choose(const Bool& condition, const Tensor& a, const Tensor& b) {
  detail::check_same_dtype("where", a, b);
  const Shape shape =
      broadcast_shapes("where", condition.shape(), broadcast_shapes("where", a.shape(), b.shape()));
  const Tensor y = empty(shape, a.dtype());
  const auto strides_of = [&](const Shape& of, const Strides& strides) {
    return kernels::broadcast_strides(of, strides, shape);
  };
  const Strides of_condition = strides_of(condition.shape(), contiguous_strides(condition.shape()));
  const Strides of_a = strides_of(a.shape(), a.strides());
  const Strides of_b = strides_of(b.shape(), b.strides());
  const kernels::Loops<4> loops(shape, {&y.strides(), &of_condition, &of_a, &of_b});
  dispatch(a.dtype(), [&]<class T>() {
    kernels::map(
        loops, detail::fresh_data<T>(y),
        [](const Block<std::uint8_t>& c, const Block<T>& u, const Block<T>& v) {
          Block<T> result;
          for (int i = 0; i < kernels::block_size; ++i) result[i] = c[i] ? u[i] : v[i];
          return result;
        },
        condition.data(), a.data<T>(), b.data<T>());
  });
  return y;
}

// Of a and b the element that is better(than the other). Equal elements share the gradient; NaN wins.
template <class Better>
Tensor extremum(const char* name, const Tensor& a, const Tensor& b, Better better) {
  const Tensor y = map_binary(name, a, b, [better]<class T>(const Block<T>& u, const Block<T>& v) {
    Block<T> result;
    for (int i = 0; i < kernels::block_size; ++i) {
      result[i] = std::isnan(u[i]) || better(u[i], v[i]) ? u[i] : v[i];
    }
    return result;
  });
  return record(name, y, {a, b}, {a, b},
                [name, better](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) {
                  const Bool a_wins = compare(name, saved[0], saved[1], better);
                  const Bool b_wins = compare(name, saved[1], saved[0], better);
                  const Tensor half = dy * 0.5;
                  return detail::broadcast_gradients(
                      needs, [&] { return where(a_wins, dy, where(b_wins, 0.0, half)); },
                      [&] { return where(b_wins, dy, where(a_wins, 0.0, half)); });
                });
}

}  // namespace

Bool operator<(const Tensor& a, const Tensor& b) { return compare("<", a, b, std::less<>()); }
Bool operator<=(const Tensor& a, const Tensor& b) { return compare("<=", a, b, std::less_equal<>()); }
Bool operator>(const Tensor& a, const Tensor& b) { return compare(">", a, b, std::greater<>()); }
Bool operator>=(const Tensor& a, const Tensor& b) { return compare(">=", a, b, std::greater_equal<>()); }
Bool operator==(const Tensor& a, const Tensor& b) { return compare("==", a, b, std::equal_to<>()); }
Bool operator!=(const Tensor& a, const Tensor& b) { return compare("!=", a, b, std::not_equal_to<>()); }
Bool operator<(const Tensor& a, double b) { return a < scalar(b, a.dtype()); }
Bool operator<=(const Tensor& a, double b) { return a <= scalar(b, a.dtype()); }
Bool operator>(const Tensor& a, double b) { return a > scalar(b, a.dtype()); }
Bool operator>=(const Tensor& a, double b) { return a >= scalar(b, a.dtype()); }
Bool operator==(const Tensor& a, double b) { return a == scalar(b, a.dtype()); }
Bool operator!=(const Tensor& a, double b) { return a != scalar(b, a.dtype()); }

Bool is_finite(const Tensor& x) {
  // x - x is zero exactly where x is finite.
  return compare("is_finite", x, x, [](auto u, auto v) { return u - v == 0; });
}

Tensor where(const Bool& condition, const Tensor& a, const Tensor& b) {
  return record("where", choose(condition, a, b), {a, b}, {},
                [condition](const Saved&, const Tensor& dy, const NeedsGradient& needs) {
                  return detail::broadcast_gradients(
                      needs, [&] { return where(condition, dy, 0.0); },
                      [&] { return where(condition, 0.0, dy); });
                });
}
Tensor where(const Bool& condition, const Tensor& a, double b) {
  return where(condition, a, scalar(b, a.dtype()));
}
Tensor where(const Bool& condition, double a, const Tensor& b) {
  return where(condition, scalar(a, b.dtype()), b);
}

Tensor maximum(const Tensor& a, const Tensor& b) { return extremum("maximum", a, b, std::greater<>()); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremum("minimum", a, b, std::less<>()); }
Tensor maximum(const Tensor& x, double b) { return maximum(x, scalar(b, x.dtype())); }
Tensor minimum(const Tensor& x, double b) { return minimum(x, scalar(b, x.dtype())); }
Tensor maximum(double a, const Tensor& x) { return maximum(scalar(a, x.dtype()), x); }
Tensor minimum(double a, const Tensor& x) { return minimum(scalar(a, x.dtype()), x); }

Tensor clamp(const Tensor& x, double low, double high) {
  if (!(low <= high)) fail<ValueError>("[clamp] the bounds [{}, {}] are not in order", low, high);
  const Tensor y = map_unary(x, [low, high]<class T>(const Block<T>& v) {
    Block<T> result;
    // A comparison with NaN is false, so NaN stays NaN.
    for (int i = 0; i < kernels::block_size; ++i) {
      const T raised = v[i] < static_cast<T>(low) ? static_cast<T>(low) : v[i];
      result[i] = raised > static_cast<T>(high) ? static_cast<T>(high) : raised;
    }
    return result;
  });
  return record("clamp", y, {x}, {x},
                [low, high](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor x = saved[0];
                  return {where((x >= low) & (x <= high), dy, 0.0)};
                });
}

}  // namespace fovea
