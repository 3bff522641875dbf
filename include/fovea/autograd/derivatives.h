#pragma once

#include <functional>

#include "fovea/autograd/tensor.h"
#include "fovea/export.h"

namespace fovea {

using Function = std::function<Tensor(const Tensor&)>;

/// J with J[i.., j..] = d f(x)[i..] / d x[j..], one backward pass per output element.
/// Shapes: x (X...), f(x) (Y...) -> (Y..., X...).
FOVEA_API Tensor jacobian(const Function& f, const Tensor& x);

/// The matrix of second derivatives of a function with one output element.
/// Shapes: x (X...) -> (X..., X...). Throws: ShapeError if f(x) has several elements.
FOVEA_API Tensor hessian(const Function& f, const Tensor& x);

/// The Hessian of f at x times v, without forming the Hessian: d/dx <df/dx, v>.
/// Shapes: x and v (X...) -> (X...). Throws: ShapeError.
FOVEA_API Tensor hvp(const Function& f, const Tensor& x, const Tensor& v);

}  // namespace fovea
