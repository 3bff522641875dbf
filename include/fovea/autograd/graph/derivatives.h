#pragma once

#include <functional>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// A function made of ops, whose derivatives are taken below. They record what they need by themselves, also
/// inside NoGrad and inside a rule, and their results are values outside the graph.
using Function = std::function<Tensor(const Tensor&)>;

/// The Jacobian matrix J[i.., j..] = d f(x)[i..] / d x[j..], by one backward pass per output element.
/// Shapes: x (X...), f(x) (Y...) -> (Y..., X...).
FOVEA_API Tensor jacobian(const Function& f, const Tensor& x);

/// The matrix of second derivatives of a function with one output element.
/// Shapes: x (X...) -> (X..., X...). Throws: ShapeError if f(x) has several elements.
FOVEA_API Tensor hessian(const Function& f, const Tensor& x);

/// The Hessian of f at x times v, without forming the Hessian: d/dx <df/dx, v>.
/// Shapes: x and v (X...) -> (X...). Throws: ShapeError.
FOVEA_API Tensor hvp(const Function& f, const Tensor& x, const Tensor& v);

/// The vector-Jacobian product J^T u: one backward pass.
/// Shapes: x (X...), u as f(x) -> (X...). Throws: ShapeError.
FOVEA_API Tensor vjp(const Function& f, const Tensor& x, const Tensor& u);

/// The Jacobian-vector product J v: the change of f(x) when x moves along v.
///
/// It is computed by differentiating the backward pass, which is linear in its cotangent: J v = d/du <J^T u,
/// v>. So it repeats what the rules of backward say, and can't check them; gradcheck compares them with
/// finite differences.
/// Shapes: x and v (X...) -> as f(x). Throws: ShapeError.
FOVEA_API Tensor jvp(const Function& f, const Tensor& x, const Tensor& v);

}  // namespace fovea
