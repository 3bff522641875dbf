#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/gradcheck.h"
#include "fovea/layers/visit.h"

namespace fovea {

namespace detail {
template <class L>
concept LayerOfTensors = Layer<L> && FunctionOfTensors<L>;

// Calls the layer with all inputs. Layers of up to four tensors are supported.
template <class L>
Tensor call_with_all(const L& layer, const Inputs& in) {
  const auto call = [&](const auto&... x) -> Tensor {
    if constexpr (std::invocable<const L&, decltype(x)...>) {
      return layer(x...);
    } else {
      refuse_arity(in.size());
    }
  };
  if (in.size() == 1) return call(in.at(0));
  if (in.size() == 2) return call(in.at(0), in.at(1));
  if (in.size() == 3) return call(in.at(0), in.at(1), in.at(2));
  if (in.size() == 4) return call(in.at(0), in.at(1), in.at(2), in.at(3));
  refuse_arity(in.size());
}
}  // namespace detail

/// Checks the gradient of `layer(x)` with respect to every parameter, by its name, and to the input, named
/// "x", if it is a Tensor. (Indices have no gradient.) The layer and x are copied to f64, and the caller's
/// stay as they are. Copies in f32 are compared with those in f64, whatever the dtype of the layer. Throws:
/// as gradcheck of a function, and as `members` of the layer.
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

/// The same for a layer of several tensors: `gradcheck(attention, {{"x", x}, {"context", context}})`.
///
/// Throws: as above, and ValueError if the layer does not take that many tensors.
template <detail::LayerOfTensors L>
GradcheckReport gradcheck(const L& layer, const Inputs& inputs, const GradcheckOptions& options = {}) {
  return detail::gradcheck_subject(
      [&](Dtype dtype) {
        const auto copy = std::make_shared<const L>(to(layer, dtype));
        detail::Subject subject{{}, named_parameters(*copy)};
        std::vector<NamedTensor> copies;
        for (const auto& [name, x] : inputs) copies.push_back({name, clone(to(x.detach(), dtype))});
        subject.tensors.insert(subject.tensors.end(), copies.begin(), copies.end());
        subject.f = [copy, in = Inputs(copies)] { return detail::call_with_all(*copy, in); };
        return subject;
      },
      options);
}

}  // namespace fovea
