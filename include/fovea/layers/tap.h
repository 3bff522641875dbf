#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

/// Reading and replacing what layers compute. A layer marks a value in its forward pass,
///
///   const Tensor hidden = tap(this, "hidden", activate(activation, up(x)));
///
/// and `Hooks` on a model read or replace it by its path in the model: "blocks.0.mlp.hidden".
namespace fovea {

namespace detail {
// What the taps of a thread report to: a Hooks, or a part of recomputation that forwards to one.
class FOVEA_API ActiveHooks {
 public:
  // Whether any hook is on this value of this layer.
  virtual bool wants(const Site& layer, std::string_view name) = 0;
  // Runs the hooks on a value, and returns the value with which the layer continues.
  virtual Tensor tap(const Site& layer, std::string_view name, const Tensor& value) = 0;

 protected:
  ~ActiveHooks() = default;
};
// The innermost of this thread, or null.
FOVEA_API extern constinit thread_local ActiveHooks* active_hooks;
}  // namespace detail

/// Reports a value of this layer to the hooks of this thread, and returns the value with which the layer
/// continues: the same, or its replacement. Where there are no hooks this costs one branch.
template <class L>
Tensor tap(const L* layer, std::string_view name, Tensor value) {
  if (!detail::active_hooks) [[likely]]
    return value;
  return detail::active_hooks->tap(site_of(layer), name, value);
}

/// Whether a hook of this thread reads or replaces this value of this layer. A layer asks where its fastest
/// path does not compute the value.
template <class L>
bool hooked(const L* layer, std::string_view name) {
  if (!detail::active_hooks) [[likely]]
    return false;
  return detail::active_hooks->wants(site_of(layer), name);
}

/// One value that a layer reported.
struct Tapped {
  std::string layer;      ///< the layer's name in the model: "blocks.0.attention", or "" for the model itself
  std::string name;       ///< the name of the value: "weights"
  std::int64_t call = 0;  ///< how often the same Hooks had seen this value of this layer before
  Tensor value;           ///< part of the graph, if there is one: `grad` gives its gradient

  /// "blocks.0.attention.weights"
  FOVEA_API std::string path() const;
};

/// Records or replaces values that the layers of a model compute on this thread, from its construction to its
/// destruction:
///
///   Hooks hooks(model);
///   hooks.record("*.attention.weights")
///       .replace("blocks.1.attention.heads", [](const Tapped& t) { return t.value * keep_heads; });
///   model.logits(ids);
///   const Tensor map = hooks["blocks.0.attention.weights"];
///
/// A path may be a pattern, in which * matches any characters. Hooks run in the order they were added, and
/// those of an outer Hooks before those of an inner one: `record` after `replace` sees the replacement.
/// Layers outside the model, copies of it included, are ignored.
///
/// Hooks on the scores or weights of attention make it run as separate ops instead of the fused kernel, with
/// memory quadratic in T.
///
/// A layer that is called by `recompute` reports its values in the forward pass only, outside any graph; when
/// backward computes it again, it takes the same path and reports nothing. Replacing a value there is an
/// error, because the second pass would not repeat it: call the layer itself, or open a NoGrad scope.
///
/// Ownership: refers to the model, which must outlive it, stay in place and keep its layers.
/// Threads: belongs to the thread that constructed it.
class FOVEA_API Hooks final : private detail::ActiveHooks {
 public:
  using Replacement = std::function<Tensor(const Tapped&)>;

  template <Layer L>
  explicit Hooks(const L& model) : Hooks(nested_layers(model)) {}
  template <Layer L>
  explicit Hooks(const L&& model) = delete;  // a temporary is destroyed before it can run
  ~Hooks();
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  /// Keeps the values of this path, in the order they are reported.
  Hooks& record(std::string_view path);
  /// Makes the layer continue with the Tensor that `replacement` returns. Layers that `replacement` calls
  /// report nothing.
  /// Throws: ValueError if `replacement` is empty. The layer's call throws ShapeError or DtypeError if the
  /// new value has another shape or dtype.
  Hooks& replace(std::string_view path, Replacement replacement);

  const std::vector<Tapped>& records() const { return records_; }
  /// The last value recorded under this path. Throws: ValueError that lists the recorded paths if there is
  /// none.
  const Tensor& operator[](std::string_view path) const;
  /// Forgets the recorded values. `Tapped::call` continues to count.
  void clear() { records_.clear(); }

 private:
  explicit Hooks(std::vector<NestedLayer> layers);
  bool wants(const Site& layer, std::string_view name) override;
  Tensor tap(const Site& layer, std::string_view name, const Tensor& value) override;
  const std::string* name_of(const Site& layer) const;

  struct Hook {
    std::string path;
    Replacement replacement;  // empty for `record`
  };
  std::vector<NestedLayer> layers_;
  std::vector<Hook> hooks_;
  std::vector<Tapped> records_;
  std::map<std::string, std::int64_t> calls_;  // by path
  detail::ActiveHooks* outer_;
};

}  // namespace fovea
