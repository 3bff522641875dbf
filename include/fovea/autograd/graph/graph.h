#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/small_vector.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

namespace detail {
struct Node;
FOVEA_API void retain(Node* node) noexcept;
FOVEA_API void release(Node* node) noexcept;
}  // namespace detail

// --- What an op's author uses
// -------------------------------------------------------------------------------

/// The tensors that an op saved, inside its rule, in the order in which they were saved. Where an undefined
/// Tensor was saved, an undefined Tensor is returned.
class FOVEA_API Saved {
 public:
  explicit Saved(const detail::Node* node) : node_(node) {}
  /// Throws: GraphError if the tensor's array was written to after it was saved.
  Tensor operator[](std::size_t i) const;

 private:
  const detail::Node* node_;
};

/// Which inputs of an op need a gradient, inside its rule, and what shape they have.
class FOVEA_API NeedsGradient {
 public:
  NeedsGradient(const detail::Node* node, std::uint64_t oldest) : node_(node), oldest_(oldest) {}
  bool operator[](std::size_t input) const;
  /// The shape of an input that needs a gradient.
  const Shape& shape(std::size_t input) const;

 private:
  const detail::Node* node_;
  std::uint64_t oldest_;
};

/// Where a view lies in its contiguous base: element 0 at `offset`, one step along axis a at strides[a].
struct Region {
  std::int64_t offset = 0;
  Strides strides;
};

/// What a rule returns for one input: its gradient; nothing, where none is needed; or a value for a region
/// of it, zero elsewhere, which is added in place, so that n slices of one tensor cost its size once.
struct Gradient {
  Gradient() = default;
  Gradient(Tensor whole) : value(std::move(whole)) {}
  Gradient(Tensor part, Region where) : value(std::move(part)), region(std::move(where)) {}

  Tensor value;
  std::optional<Region> region;
};

/// One Gradient per input.
using Gradients = SmallVector<Gradient, 3>;

/// Maps the cotangents of an op's outputs to those of its inputs. Written with ops, it is differentiable to
/// any order. It captures no Tensor: what it needs is saved, so that the engine can check and free it.
/// In the cotangents of an op with several outputs, those that did not contribute are undefined.
using Rule = std::function<Gradients(const Saved&, std::span<const Tensor>, const NeedsGradient&)>;

/// Tensors by reference, so that recording copies no handle it does not keep.
using TensorList = std::initializer_list<std::reference_wrapper<const Tensor>>;

namespace detail {
using TensorRefs = std::span<const std::reference_wrapper<const Tensor>>;
enum class Order { any, once };
FOVEA_API void check_finite(const char* name, std::span<const Tensor> values, TensorRefs inputs);
FOVEA_API bool anomaly_mode();
FOVEA_API bool needs_recording(TensorRefs inputs);
FOVEA_API void attach_node(const char* name, std::span<Tensor> values, TensorRefs inputs, TensorRefs saved,
                           Order order, Rule rule);

template <class F>
void record_values(const char* name, std::span<Tensor> values, TensorRefs inputs, TensorRefs saved,
                   Order order, F&& rule) {
  if (anomaly_mode()) check_finite(name, values, inputs);
  if (needs_recording(inputs)) attach_node(name, values, inputs, saved, order, Rule(std::forward<F>(rule)));
}

// A rule of one output takes its cotangent directly.
template <class F>
auto single_output(F rule) {
  return [rule = std::move(rule)](const Saved& saved, std::span<const Tensor> cotangents,
                                  const NeedsGradient& needs) {
    return Gradients(rule(saved, cotangents[0], needs));
  };
}
inline TensorRefs refs(TensorList list) { return {list.begin(), list.size()}; }
}  // namespace detail

/// Gives `value`, which an op has just computed from `inputs`, its place in the graph, and returns it.
///
/// rule: (const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients. `saved` may hold inputs, the
/// value itself, or anything else that the rule needs. An optional input that was not given is passed as an
/// undefined Tensor: it needs no gradient. Nothing is recorded, and nothing kept, when gradients are off or
/// no input needs one. `name` must outlive the graph: use a string literal.
template <class F>
Tensor record(const char* name, Tensor value, TensorList inputs, TensorList saved, F&& rule) {
  detail::record_values(name, {&value, 1}, detail::refs(inputs), detail::refs(saved), detail::Order::any,
                        detail::single_output(std::forward<F>(rule)));
  return value;
}

/// The same for an op of any number of inputs, such as concat.
template <class F>
Tensor record(const char* name, Tensor value, std::span<const Tensor> inputs, TensorList saved, F&& rule) {
  const std::vector<std::reference_wrapper<const Tensor>> refs(inputs.begin(), inputs.end());
  detail::record_values(name, {&value, 1}, refs, detail::refs(saved), detail::Order::any,
                        detail::single_output(std::forward<F>(rule)));
  return value;
}

/// The same for an op of several outputs; rule: (const Saved&, std::span<const Tensor>, const
/// NeedsGradient&).
template <class F>
std::vector<Tensor> record(const char* name, std::vector<Tensor> values, TensorList inputs, TensorList saved,
                           F&& rule) {
  detail::record_values(name, values, detail::refs(inputs), detail::refs(saved), detail::Order::any,
                        std::forward<F>(rule));
  return values;
}

/// For a rule that computes outside ops: its gradient is right, but differentiating that gradient throws
/// GraphError instead of giving a silent zero.
template <class F>
Tensor record_once(const char* name, Tensor value, TensorList inputs, TensorList saved, F&& rule) {
  detail::record_values(name, {&value, 1}, detail::refs(inputs), detail::refs(saved), detail::Order::once,
                        detail::single_output(std::forward<F>(rule)));
  return value;
}

/// Whether ops on this thread record: true by default, false inside NoGrad and, within a rule, unless the
/// gradient itself is being differentiated. A rule with a fused kernel uses it only when this is false.
FOVEA_API bool recording();

// --- What a user of gradients uses
// --------------------------------------------------------------------------

/// No op on this thread is recorded while one of these lives.
class FOVEA_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// While one of these lives, the first op on this thread whose value or gradient turns non-finite throws
/// NonFiniteError with its name, shape and position. A NaN that comes in is reported at its first use; an
/// infinity that comes in (a mask) is not. Costs a pass over every value.
class FOVEA_API Anomaly {
 public:
  Anomaly();
  ~Anomaly();
  Anomaly(const Anomaly&) = delete;
  Anomaly& operator=(const Anomaly&) = delete;

 private:
  bool before_;
};

struct BackwardOptions {
  Tensor gradient = {};       ///< the cotangent of the output, of its shape; may be left out for one element
  bool retain_graph = false;  ///< keep what was saved, for another pass
  bool create_graph =
      false;  ///< record the pass, so that gradients can be differentiated; implies retain_graph
};

/// Adds d output / d leaf into `grad()` of every leaf that the output depends on. If it throws, no leaf's
/// gradient has changed, and the graph is as it was.
/// Throws: GraphError if nothing was recorded, the graph was freed or a saved tensor was written to;
/// ShapeError if the output has several elements and no gradient is given.
FOVEA_API void backward(const Tensor& output, const BackwardOptions& options = {});

struct GradOptions {
  std::vector<Tensor> gradients =
      {};  ///< one cotangent per output; may be left out for outputs of one element
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  ///< give zeros for an input that no output depends on, instead of an error
};

/// The gradient of the outputs (their sum, weighted by the cotangents) with respect to each input, which may
/// be leaves or tensors computed on the way. Leaves' `grad()` are left alone.
/// Each result has an array of its own, unless it is recorded. Throws: as `backward`;
/// GraphError for an unused input unless it is allowed.
FOVEA_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                   const GradOptions& options = {});

/// The graph behind a tensor as Graphviz text: `dot -Tsvg`.
FOVEA_API std::string to_dot(const Tensor& output);

}  // namespace fovea
