#pragma once

#include <concepts>
#include <vector>

#include "fovea/autograd/gradcheck.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Checks the gradients of `layer(x)`: of each parameter, by its name, and of the input, called "x", if it is
/// a Tensor (ids have none). The layer and x are copied to f64; the caller's stay as they are. Throws: as
/// gradcheck of a function, and as `members`.
template <Layer L, class Input>
GradcheckReport gradcheck(const L& layer, const Input& x, const GradcheckOptions& options = {}) {
  const L exact = to(layer, f64);
  std::vector<NamedTensor> leaves = named_parameters(exact);
  if constexpr (std::same_as<Input, Tensor>) {
    const Tensor input = clone(to(x.detach(), f64));
    leaves.push_back({"x", input});
    return gradcheck_in_place([&] { return exact(input); }, leaves, options);
  } else {
    return gradcheck_in_place([&] { return exact(x); }, leaves, options);
  }
}

}  // namespace fovea
