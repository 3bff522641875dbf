#pragma once

#include "fovea/autograd/graph/recompute.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// layer(x, rest...), computed again in backward instead of keeping what is computed on the way. Gradients
/// reach the Tensors among the arguments and all tensors of the layer.
///
/// Throws: GraphError, at once, if the layer uses a tensor that requires a gradient and is not among these:
/// one that its `visit` does not name.
template <Layer L, class... Rest>
Tensor recompute(const L& layer, const Tensor& x, const Rest&... rest) requires Recomputable<L, Rest...> {
  const auto visit_own = [](L& own, const auto& visit) { detail::change_tensors(members(own), visit); };
  return detail::recompute_call(layer, visit_own, x, rest...);
}

}  // namespace fovea
