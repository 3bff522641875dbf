#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

namespace detail {

/// State of a thread that what is computed on it depends on, and that the graph does not know: the hooks on
/// layers, for instance. One of these belongs to each recomputed function, and opens a scope around its runs.
class RerunState {
 public:
  virtual ~RerunState() = default;
  /// For the first run, on the thread as it is: notes what later runs need.
  virtual std::shared_ptr<void> open_first_run() = 0;
  /// For a later run: puts the thread into the state of the first run.
  virtual std::shared_ptr<void> open_rerun() = 0;
};
using MakeRerunState = std::unique_ptr<RerunState> (*)();
/// Has one made for every function that is recomputed from now on. The owner of the state calls this once,
/// before main.
FOVEA_API void set_rerun_state(MakeRerunState make);

/// The value of `forward`, recorded as one op of `inputs`. Its rule calls `rerun(inputs)`, which must compute
/// the same from its arguments alone.
FOVEA_API Tensor recompute(const std::function<Tensor()>& forward,
                           const std::function<Tensor(const std::vector<Tensor>&)>& rerun,
                           const std::vector<Tensor>& inputs);

/// f(args...), where visit_own(f, visit) calls visit(tensor) for every tensor that f holds itself.
template <class F, class VisitOwn, class... Args>
Tensor recompute_call(const F& f, const VisitOwn& visit_own, const Args&... args) {
  const auto visit_tensors = [visit_own](F& function, std::tuple<Args...>& arguments, const auto& visit) {
    const auto visit_argument = [&]<class T>(T& argument) {
      if constexpr (std::same_as<T, Tensor>) {
        if (argument.defined()) visit(argument);
      }
    };
    std::apply([&](auto&... argument) { (visit_argument(argument), ...); }, arguments);
    visit_own(function, visit);
  };
  // The copies that the graph keeps hold no leaf: a graph with its own leaves in it would never be freed.
  F kept = f;
  std::tuple<Args...> kept_args(args...);
  std::vector<Tensor> inputs;
  visit_tensors(kept, kept_args, [&](Tensor& x) { inputs.push_back(std::exchange(x, x.detach())); });
  const auto rerun = [visit_tensors, kept, kept_args](const std::vector<Tensor>& in) {
    F again = kept;
    std::tuple<Args...> again_args = kept_args;
    auto next = in.begin();
    visit_tensors(again, again_args, [&](Tensor& x) { x = *next++; });
    return std::apply(std::as_const(again), again_args);
  };
  return recompute([&] { return f(args...); }, rerun, inputs);
}

}  // namespace detail

/// What `recompute` can call with a Tensor and these further arguments.
template <class F, class... Rest>
concept Recomputable = std::invocable<const F&, const Tensor&, const Rest&...>;

/// f(x, rest...), without keeping what f computes on the way: it is computed again in backward (Chen et al.
/// 2016). Memory for one forward pass of f is so traded for the time of another one.
///
/// Gradients, of any order, have the same bits as without it, dropout included: f runs again in the
/// `TrainMode`, `EvalMode` and `Anomaly` scopes that it ran in, with the same draws. (A tensor that is used
/// both inside and outside of f has the sum of the same gradients, in another order.)
///
/// f must be a function of its arguments: it runs several times, and may not remember. It is kept, by copy,
/// for as long as the graph, and so is what is no Tensor among its arguments (a mask, say). Layers, which
/// have tensors of their own, are recomputed by the function in fovea/layers/recompute.h.
/// Throws: GraphError, at once, if f uses a tensor that requires a gradient and is not an argument.
template <class F, class... Rest>
Tensor recompute(const F& f, const Tensor& x, const Rest&... rest) requires Recomputable<F, Rest...> {
  return detail::recompute_call(
      f, [](F&, const auto&) {}, x, rest...);
}

}  // namespace fovea
