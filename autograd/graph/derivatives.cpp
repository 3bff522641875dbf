#include "fovea/autograd/graph/derivatives.h"

#include <cstring>

#include "autograd/base/fail.h"
#include "autograd/graph/thread_modes.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {
namespace {

Tensor as_leaf(const Tensor& x) {
  Tensor leaf = x.detach();
  leaf.set_requires_grad();
  return leaf;
}

// The derivative of each element of y with respect to x, which y was computed from.
Tensor rows_of_gradients(const Tensor& y, const Tensor& x) {
  Shape shape = y.shape();
  for (const std::int64_t size : x.shape()) shape.push_back(size);
  Tensor jacobian = zeros(shape, x.dtype());
  if (!y.requires_grad()) return jacobian;
  dispatch(x.dtype(), [&]<class T>() {
    T* row = detail::fresh_data<T>(jacobian);
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      const Tensor pick = zeros(y.shape(), y.dtype());
      detail::fresh_data<T>(pick)[i] = 1;
      const Tensor gradient =
          grad({y}, {x}, {.gradients = {pick}, .retain_graph = true, .allow_unused = true})[0];
      for (const double value : gradient.to_vector()) *row++ = static_cast<T>(value);
    }
  });
  return jacobian;
}

// df/dx as a value that can be differentiated again.
Tensor gradient_in_graph(const char* name, const Function& f, const Tensor& x) {
  const Tensor y = f(x);
  if (y.numel() != 1) {
    fail<ShapeError>("[{}] the function must have one output element, and gave shape {}", name,
                     to_string(y.shape()));
  }
  return grad({y}, {x}, {.create_graph = true, .allow_unused = true})[0];
}

void check_same_shape(const char* name, const char* what, const Tensor& vector, const Tensor& x) {
  if (vector.shape() == x.shape()) return;
  fail<ShapeError>("[{}] the vector has shape {}, the {} {}", name, to_string(vector.shape()), what,
                   to_string(x.shape()));
}

}  // namespace

Tensor jacobian(const Function& f, const Tensor& x) {
  const detail::WithGraph scope;
  const Tensor leaf = as_leaf(x);
  return rows_of_gradients(f(leaf), leaf);
}

Tensor hessian(const Function& f, const Tensor& x) {
  const detail::WithGraph scope;
  const Tensor leaf = as_leaf(x);
  return rows_of_gradients(gradient_in_graph("hessian", f, leaf), leaf);
}

Tensor hvp(const Function& f, const Tensor& x, const Tensor& v) {
  const detail::WithGraph scope;
  check_same_shape("hvp", "input", v, x);
  const Tensor leaf = as_leaf(x);
  const Tensor gradient = gradient_in_graph("hvp", f, leaf);
  if (!gradient.requires_grad()) return zeros(x.shape(), x.dtype());
  return grad({gradient}, {leaf}, {.gradients = {v}, .allow_unused = true})[0];
}

Tensor vjp(const Function& f, const Tensor& x, const Tensor& u) {
  const detail::WithGraph scope;
  const Tensor leaf = as_leaf(x);
  const Tensor y = f(leaf);
  check_same_shape("vjp", "output", u, y);
  if (!y.requires_grad()) return zeros(x.shape(), x.dtype());
  return grad({y}, {leaf}, {.gradients = {u}, .allow_unused = true})[0];
}

Tensor jvp(const Function& f, const Tensor& x, const Tensor& v) {
  const detail::WithGraph scope;
  check_same_shape("jvp", "input", v, x);
  const Tensor leaf = as_leaf(x);
  const Tensor y = f(leaf);
  const Tensor nothing = zeros(y.shape(), y.dtype());
  if (!y.requires_grad()) return nothing;
  const Tensor u = as_leaf(nothing);
  const Tensor gradient =
      grad({y}, {leaf}, {.gradients = {u}, .create_graph = true, .allow_unused = true})[0];
  if (!gradient.requires_grad()) return nothing;
  return grad({gradient}, {u}, {.gradients = {v}, .allow_unused = true})[0];
}

}  // namespace fovea
