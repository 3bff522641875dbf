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

/// A window on what layers compute. A layer marks a value in its forward pass,
///
///   const Tensor hidden = tap(this, "hidden", activate(activation, up(x)));
///
/// and a `Hooks` on a model reads or replaces it by the layer's name in the model: "blocks.0.mlp.hidden".
namespace fovea {

namespace detail {
// What the taps of a thread report to.
class FOVEA_API Watcher {
 public:
  virtual bool wants(const Site& layer, std::string_view name) = 0;
  // The value that the layer goes on with.
  virtual Tensor tap(const Site& layer, std::string_view name, const Tensor& value) = 0;

 protected:
  ~Watcher() = default;
};
FOVEA_API extern constinit thread_local Watcher* watcher;
}  // namespace detail

/// Reports a value of this layer and returns what to go on with: the value, or what a Hooks on this thread
/// puts in its place. Without a Hooks it costs one branch.
template <class L>
Tensor tap(const L* layer, std::string_view name, Tensor value) {
  if (!detail::watcher) [[likely]]
    return value;
  return detail::watcher->tap(site_of(layer), name, value);
}

/// Whether a Hooks on this thread asks for this value of this layer: for a layer that has it only on a path
/// it would otherwise not take.
template <class L>
bool watched(const L* layer, std::string_view name) {
  if (!detail::watcher) [[likely]]
    return false;
  return detail::watcher->wants(site_of(layer), name);
}

/// One value that a layer reported.
struct Tapped {
  std::string layer;      ///< its name in the model: "blocks.0.attention", or "" for the model itself
  std::string name;       ///< the value's: "weights"
  std::int64_t call = 0;  ///< how often this layer had reported this name to the same Hooks before
  Tensor value;           ///< in its graph, if there is one, so that gradients reach it by `grad`

  /// "blocks.0.attention.weights"
  FOVEA_API std::string path() const;
};

/// While one of these lives, values that the layers of a model report on this thread are recorded or
/// replaced:
///
///   Hooks watch(model);
///   watch.record("*.attention.weights")
///       .replace("blocks.1.attention.heads", [](const Tapped& t) { return t.value * keep_heads; });
///   model.logits(ids);
///   const Tensor map = watch["blocks.0.attention.weights"];
///
/// Values are asked for by path, in which * stands for any characters. What is asked for applies in the order
/// it was asked, and Watches within one another in the order they were opened: so `record` after `replace`
/// sees what was put in place. Layers that are not in the model, copies of it included, are not seen.
///
/// Reading or replacing the scores or weights of attention makes it take the path that has them, made of
/// ops, with memory quadratic in T.
///
/// In a `checkpoint` values are reported once, by the forward pass, outside any graph; what is computed again
/// in backward takes the same path and reports nothing. To replace a value there is an error, since the
/// second pass would not: leave out the checkpoint, or open a NoGrad scope.
///
/// Ownership: refers to the model, which must stay where it is and keep its layers.
/// Threads: a Hooks belongs to the thread that opened it.
class FOVEA_API Hooks final : private detail::Watcher {
 public:
  using Replacement = std::function<Tensor(const Tapped&)>;

  template <Layer L>
  explicit Hooks(const L& model) : Hooks(nested_layers(model)) {}
  template <Layer L>
  explicit Hooks(const L&& model) = delete;  // it would be gone before it is run
  ~Hooks();
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

  /// Keeps handles of these values, in the order they are reported.
  Hooks& record(std::string_view path);
  /// The layer goes on with what `replacement` returns, of the same shape and dtype: ShapeError or DtypeError
  /// from the layer's call otherwise. Nothing is reported while it runs. Throws: ValueError if it is empty.
  Hooks& replace(std::string_view path, Replacement replacement);

  const std::vector<Tapped>& records() const { return records_; }
  /// The value recorded last under that path. Throws: ValueError, saying what there is.
  const Tensor& operator[](std::string_view path) const;
  /// Forgets what was recorded; calls count on.
  void clear() { records_.clear(); }

 private:
  explicit Hooks(std::vector<NestedLayer> layers);
  bool wants(const Site& layer, std::string_view name) override;
  Tensor tap(const Site& layer, std::string_view name, const Tensor& value) override;
  const std::string* name_of(const Site& layer) const;

  struct Request {
    std::string path;
    Replacement replacement;  // empty: record
  };
  std::vector<NestedLayer> layers_;
  std::vector<Request> requests_;
  std::vector<Tapped> records_;
  std::map<std::string, std::int64_t> calls_;  // by path
  detail::Watcher* before_;
};

}  // namespace fovea
