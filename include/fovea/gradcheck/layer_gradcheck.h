#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/gradcheck.h"
#include "fovea/layers/visit.h"

namespace fovea {

namespace detail {
// layer(all inputs), of which there are at most four.
template <std::size_t count = 1, class L>
Tensor call_with_all(const L& layer, const Inputs& in) {
  if (in.size() != count) {
    if constexpr (count < 4) return call_with_all<count + 1>(layer, in);
  }
  return [&]<std::size_t... i>(std::index_sequence<i...>)->Tensor {
    if constexpr (std::invocable<const L&, decltype(in.at(i))...>) {
      if (in.size() == count) return layer(in.at(i)...);
    }
    refuse_arity(in.size());
  }
  (std::make_index_sequence<count>());
}
}  // namespace detail

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

/// The same for a layer of several tensors: `gradcheck(attention, {{"x", x}, {"context", context}})`.
///
/// Throws: also ValueError if the layer does not take so many.
template <Layer L>
requires detail::FunctionOfTensors<L> GradcheckReport gradcheck(const L& layer, const Inputs& inputs,
                                                                const GradcheckOptions& options = {}) {
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
