#pragma once

#include <concepts>
#include <memory>

#include "fovea/autograd/gradcheck.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Checks the gradients of `layer(x)`: of each parameter, by its name, and of the input, called "x", if it is
/// a Tensor (ids have none). The layer and x are copied to f64; the caller's stay as they are. Copies in f32
/// are compared with f64, whatever the layer's dtype. Throws: as gradcheck of a function, and as `members`.
template <Layer L, class Input>
GradcheckReport gradcheck(const L& layer, const Input& x, const GradcheckOptions& options = {}) {
  return detail::gradcheck_subject(
      [&](Dtype dtype) {
        const auto copy = std::make_shared<const L>(to(layer, dtype));
        detail::Subject subject{{}, named_parameters(*copy)};
        if constexpr (std::same_as<Input, Tensor>) {
          const Tensor input = clone(to(x.detach(), dtype));
          subject.tensors.push_back({"x", input});
          subject.f = [copy, input] { return (*copy)(input); };
        } else {
          subject.f = [copy, x] { return (*copy)(x); };
        }
        return subject;
      },
      options);
}

}  // namespace fovea
