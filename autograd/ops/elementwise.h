#pragma once

#include "autograd/base/fail.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/ops/elementwise.h"

// What elementwise ops share: loops over the elements of tensors, and rules made of local derivatives.
namespace fovea::detail {

using kernels::Block;

inline void check_same_dtype(const char* name, const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return;
  fail<DtypeError>("[{}] {} {} met {} {}: convert one with to(x, {})", name, name_of(a.dtype()),
                   to_string(a.shape()), name_of(b.dtype()), to_string(b.shape()), name_of(f64));
}

/// f over the elements of x. f: template <class T> (const Block<T>&) -> Block<T>.
template <class F>
Tensor map_unary(const Tensor& x, const F& f) {
  Tensor y = empty(impl_of(x).shape, x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    const kernels::Loops<2> loops = x.is_contiguous()
                                        ? kernels::Loops<2>(x.numel())
                                        : kernels::Loops<2>(x.shape(), {&y.strides(), &x.strides()});
    kernels::map(
        loops, fresh_data<T>(y), [&f](const Block<T>& v) -> Block<T> { return f(v); }, x.data<T>());
  });
  return y;
}

/// Loops over contiguous elements of `shape` and those of a and b, broadcast to it.
inline kernels::Loops<3> binary_loops(const Shape& shape, const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape() && a.is_contiguous() && b.is_contiguous())
    return kernels::Loops<3>(numel(shape));
  const Strides result = contiguous_strides(shape);
  const Strides of_a = kernels::broadcast_strides(a.shape(), a.strides(), shape);
  const Strides of_b = kernels::broadcast_strides(b.shape(), b.strides(), shape);
  return kernels::Loops<3>(shape, {&result, &of_a, &of_b});
}

/// f over the elements of a and b, broadcast. f: template <class T> (const Block<T>&, const Block<T>&) ->
/// Block<T>. Throws: DtypeError, ShapeError, naming the op.
template <class F>
Tensor map_binary(const char* name, const Tensor& a, const Tensor& b, const F& f) {
  check_same_dtype(name, a, b);
  Tensor y =
      empty(a.shape() == b.shape() ? a.shape() : broadcast_shapes(name, a.shape(), b.shape()), a.dtype());
  const kernels::Loops<3> loops = binary_loops(y.shape(), a, b);
  dispatch(a.dtype(), [&]<class T>() {
    kernels::map(
        loops, fresh_data<T>(y), [&f](const Block<T>& u, const Block<T>& v) -> Block<T> { return f(u, v); },
        a.data<T>(), b.data<T>());
  });
  return y;
}

/// An elementwise op y = value(x) whose local derivative dy/dx is a formula in x or y.
///   value: template <class T> (const Block<T>&) -> Block<T>
///   slope: (const Tensor& x or y) -> Tensor, made of ops
template <class Value, class Slope>
Tensor unary_op(const char* name, const Tensor& x, const Value& value, In in, const Slope& slope) {
  return record_elementwise(name, map_unary(x, value), x, slope, in);
}

/// tanh'(x), with all digits where 1 - tanh(x)^2 would cancel.
Tensor tanh_slope(const Tensor& x);
/// exp(-factor x^2), for a factor of 1 or 1/2, with all digits where rounding x^2 would lose some.
Tensor gaussian(const Tensor& x, double factor);

/// The gradients of an op of two inputs that broadcasts. da() and db() give them in the shape of the output;
/// each is called only if it is needed, and then summed over the axes that its input was repeated along.
template <class DA, class DB>
Gradients broadcast_gradients(const NeedsGradient& needs, const DA& da, const DB& db) {
  Gradients gradients(2, {});
  if (needs[0]) gradients[0] = sum_to(da(), needs.shape(0));
  if (needs[1]) gradients[1] = sum_to(db(), needs.shape(1));
  return gradients;
}

}  // namespace fovea::detail
