#pragma once

#include <concepts>
#include <functional>
#include <tuple>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"
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

template <class T>
void add_if_tensor(std::vector<Tensor>& tensors, const T& argument) {
  if constexpr (std::same_as<T, Tensor>) {
    if (argument.defined()) tensors.push_back(argument);
  }
}
// argument = f(argument), if it is a Tensor and has a value.
template <class T, class F>
void put_if_tensor(T& argument, const F& f) {
  if constexpr (std::same_as<T, Tensor>) {
    if (argument.defined()) argument = f(argument);
  }
}
}  // namespace detail

/// f(x, more...), without keeping what f computes on the way: it is computed again in backward (Chen et al.
/// 2016). Memory for one forward pass of f is so traded for the time of another one.
///
/// Gradients, of any order, have the same bits as without it, dropout included: f runs again in the
/// `TrainMode`, `EvalMode` and `Anomaly` scopes that it ran in, with the same draws. (A tensor that is used
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

/// layer(x, rest...) in the same way. Inputs of the checkpoint are x, the Tensors in `rest`, and all tensors
/// of the layer, so gradients reach its parameters as always; what else there is in `rest` (a mask, say) is
/// kept by copy.
///
/// Throws: GraphError, at once, if the layer uses a tensor that requires a gradient and is not among these:
/// one that its `visit` does not name.
template <Layer L, class... Rest>
Tensor checkpoint(const L& layer, const Tensor& x, const Rest&... rest) {
  std::vector<Tensor> inputs{x};
  (detail::add_if_tensor(inputs, rest), ...);
  const std::vector<Tensor> own = detail::tensors_of(members(layer));
  inputs.insert(inputs.end(), own.begin(), own.end());
  // What is kept is outside the graph: a graph that held its own leaves would keep their gradients alive.
  L kept = layer;
  detail::put_tensors(members(kept), detail::detached(own));
  std::tuple<Rest...> kept_rest(rest...);
  std::apply(
      [](auto&... arg) { (detail::put_if_tensor(arg, [](const Tensor& t) { return t.detach(); }), ...); },
      kept_rest);
  const auto rerun = [kept, kept_rest](const std::vector<Tensor>& in) {
    L again = kept;
    detail::put_tensors(members(again), in);
    std::tuple<Rest...> rest_again = kept_rest;
    auto next = in.begin() + 1;
    return std::apply(
        [&](auto&... arg) {
          (detail::put_if_tensor(arg, [&](const Tensor&) { return *next++; }), ...);
          return again(in[0], arg...);
        },
        rest_again);
  };
  return detail::checkpoint([&] { return layer(x, rest...); }, rerun, inputs);
}

}  // namespace fovea
