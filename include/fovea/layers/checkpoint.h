#pragma once

#include <concepts>
#include <functional>
#include <tuple>
#include <vector>

#include "fovea/autograd/tensor.h"
#include "fovea/export.h"
#include "fovea/layers/visit.h"

namespace fovea {

namespace detail {
// A function of its arguments alone: it captures no tensor that requires a gradient.
using Rerun = std::function<Tensor(const std::vector<Tensor>&)>;
// The value of `forward`, recorded as one op of `inputs` that is differentiated by way of `rerun(inputs)`.
FOVEA_API Tensor checkpoint(const std::function<Tensor()>& forward, const Rerun& rerun,
                            const std::vector<Tensor>& inputs);

FOVEA_API std::vector<Tensor> tensors_of(const std::vector<Member>& members);
FOVEA_API std::vector<Tensor> detached(const std::vector<Tensor>& tensors);
// Gives members other tensors, and those tied to them; the members must belong to a layer that is not const.
// `tensors` may start with others: the last ones are the members'.
FOVEA_API void put_tensors(const std::vector<Member>& members, const std::vector<Tensor>& tensors);
}  // namespace detail

/// f(x, more...), without keeping what f computes on the way: it is computed again in backward (Chen et al.
/// 2016). Memory for one forward pass of f is so traded for the time of another one.
///
/// Gradients, of any order, have the same bits as without it, dropout included: f runs again in the
/// `Training`, `Inference` and `Anomaly` scopes that it ran in, with the same draws. (A tensor that is used
/// both inside and outside of f has the sum of the same gradients, in another order.)
///
/// f must be a function of its arguments: it runs several times, and may not remember. It is kept, by copy,
/// for as long as the graph.
/// Throws: GraphError, at once, if f uses a tensor that requires a gradient and is not an argument.
template <class F, std::same_as<Tensor>... More>
requires(!Layer<F> && std::invocable<const F&, const Tensor&, const More&...>) Tensor
    checkpoint(const F& f, const Tensor& x, const More&... more) {
  return detail::checkpoint([&] { return f(x, more...); },
                            [f](const std::vector<Tensor>& in) {
                              return [&]<std::size_t... i>(std::index_sequence<i...>) { return f(in[i]...); }
                              (std::make_index_sequence<1 + sizeof...(More)>());
                            },
                            {x, more...});
}

/// layer(x, rest...) in the same way. All tensors of the layer are inputs of the checkpoint, so gradients
/// reach its parameters as always; the rest (a mask, say) is kept by copy.
///
/// Throws: GraphError, at once, if the layer uses a tensor that requires a gradient and is neither x nor
/// named in its `visit`, such as one in `rest`.
template <Layer L, class... Rest>
Tensor checkpoint(const L& layer, const Tensor& x, const Rest&... rest) {
  std::vector<Tensor> inputs = detail::tensors_of(members(layer));
  // What is kept of the layer is outside the graph: the graph's own leaves would keep their gradients alive.
  L kept = layer;
  detail::put_tensors(members(kept), detail::detached(inputs));
  inputs.insert(inputs.begin(), x);
  return detail::checkpoint([&] { return layer(x, rest...); },
                            [kept, rest = std::tuple(rest...)](const std::vector<Tensor>& in) {
                              L again = kept;
                              detail::put_tensors(members(again), in);
                              return std::apply([&](const auto&... more) { return again(in[0], more...); },
                                                rest);
                            },
                            inputs);
}

}  // namespace fovea
