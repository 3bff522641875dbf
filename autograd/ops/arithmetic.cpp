#include <cmath>

#include "autograd/graph/accumulate.h"
#include "autograd/kernels/lanes.h"
#include "autograd/ops/elementwise.h"

namespace fovea {

using detail::Block;
using detail::broadcast_gradients;
using detail::map_binary;
using detail::map_unary;
using detail::multiply_no_nan;

Tensor add(const Tensor& a, const Tensor& b) {
  const Tensor y = map_binary("add", a, b, [](const auto& u, const auto& v) { return u + v; });
  return record("add", y, {a, b}, {}, [](const Saved&, const Tensor& dy, const NeedsGradient& needs) {
    return broadcast_gradients(
        needs, [&] { return dy; }, [&] { return dy; });
  });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  const Tensor y = map_binary("sub", a, b, [](const auto& u, const auto& v) { return u - v; });
  return record("sub", y, {a, b}, {}, [](const Saved&, const Tensor& dy, const NeedsGradient& needs) {
    // Summed before it is negated, since b may be far smaller than dy.
    return broadcast_gradients(
        needs, [&] { return dy; }, [&] { return neg(sum_to(dy, needs.shape(1))); });
  });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  const Tensor y = map_binary("mul", a, b, [](const auto& u, const auto& v) { return u * v; });
  return record("mul", y, {a, b}, {a, b},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) {
                  return broadcast_gradients(
                      needs, [&] { return multiply_no_nan(dy, saved[1]); },
                      [&] { return multiply_no_nan(dy, saved[0]); });
                });
}

Tensor div(const Tensor& a, const Tensor& b) {
  const Tensor y = map_binary("div", a, b, [](const auto& u, const auto& v) { return u / v; });
  return record("div", y, {a, b}, {b, y},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) {
                  const Tensor b = saved[0];
                  return broadcast_gradients(
                      needs, [&] { return multiply_no_nan(dy, 1.0 / b); },
                      [&] { return multiply_no_nan(dy, -(saved[1] / b)); });
                });
}

Tensor operator/(const Tensor& x, double b) { return div(x, scalar(b, x.dtype())); }
Tensor operator/(double a, const Tensor& x) { return div(scalar(a, x.dtype()), x); }

Tensor neg(const Tensor& x) {
  const Tensor y = map_unary(x, []<class T>(const Block<T>& v) -> Block<T> { return -v; });
  return record("neg", y, {x}, {},
                [](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients { return {neg(dy)}; });
}

Tensor affine(const Tensor& x, double a, double b) {
  const Tensor y = map_unary(x, [a, b]<class T>(const Block<T>& v) -> Block<T> {
    return v * static_cast<T>(a) + static_cast<T>(b);
  });
  return record("affine", y, {x}, {}, [a](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
    if (a == 1) return {dy};
    return {std::isfinite(a) ? affine(dy, a, 0) : multiply_no_nan(dy, scalar(a, dy.dtype()))};
  });
}

namespace {

Tensor& replace(const char* name, Tensor& x, Tensor value) {
  if (x.is_leaf() && x.requires_grad()) {
    fail<GraphError>(
        "[{0}] x, shape {1}, is a leaf that requires a gradient, and x {0} y makes another tensor of it: "
        "give "
        "the result a name of its own, or change the elements by an optimizer or mutable_data",
        name, to_string(x.shape()));
  }
  return x = std::move(value);
}

}  // namespace

Tensor& operator+=(Tensor& x, const Tensor& y) { return replace("+=", x, x + y); }
Tensor& operator-=(Tensor& x, const Tensor& y) { return replace("-=", x, x - y); }
Tensor& operator*=(Tensor& x, const Tensor& y) { return replace("*=", x, x * y); }
Tensor& operator/=(Tensor& x, const Tensor& y) { return replace("/=", x, x / y); }
Tensor& operator+=(Tensor& x, double y) { return replace("+=", x, x + y); }
Tensor& operator-=(Tensor& x, double y) { return replace("-=", x, x - y); }
Tensor& operator*=(Tensor& x, double y) { return replace("*=", x, x * y); }
Tensor& operator/=(Tensor& x, double y) { return replace("/=", x, x / y); }

namespace detail {

Tensor multiply_no_nan(const Tensor& dy, const Tensor& local) {
  constexpr const char* name = "multiply_no_nan";
  const Tensor product =
      map_binary(name, dy, local, []<class T>(const Block<T>& g, const Block<T>& d) -> Block<T> {
        Block<T> result = g * d;
        // d - d is zero exactly where d is finite. Written without branches, for packets.
        kernels::for_each_lane([&](int i) {
          const T some_dy = g[i] == 0 ? T(0) : T(1);
          const T finite = d[i] - d[i] == 0 ? T(1) : T(0);
          result[i] = some_dy + finite == 0 ? T(0) : result[i];
        });
        return result;
      });
  return record(name, product, {dy, local}, {dy, local},
                [](const Saved& saved, const Tensor& g, const NeedsGradient& needs) {
                  const Tensor dy = saved[0];
                  const auto of_dy = [&] {
                    const Tensor local = saved[1];
                    return multiply_no_nan(g, where((dy == 0.0) & !is_finite(local), 0.0, local));
                  };
                  return broadcast_gradients(needs, of_dy, [&] { return multiply_no_nan(g, dy); });
                });
}

void for_each_part(std::int64_t n, const std::function<void(std::int64_t, std::int64_t)>& f) {
  kernels::parallel_for(n, kernels::elements_per_chunk, f);
}

void add_in_place(const Tensor& total, const Tensor& part) {
  const kernels::Loops<3> loops(total.shape(), {&total.strides(), &total.strides(), &part.strides()});
  dispatch(total.dtype(), [&]<class T>() {
    T* data = fresh_data<T>(total);
    kernels::map(
        loops, data, [](const Block<T>& u, const Block<T>& v) -> Block<T> { return u + v; },
        static_cast<const T*>(data), part.data<T>());
  });
}

}  // namespace detail
}  // namespace fovea
