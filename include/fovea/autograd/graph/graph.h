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
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

namespace detail {
struct Node;
}

// --- For authors of ops ------------------------------------------------------------------------------------

/// The tensors that an op saved, inside its rule, in the order in which they were saved. Where an undefined
/// Tensor was saved, an undefined Tensor is returned.
class FOVEA_API Saved {
 public:
  /// Throws: GraphError if the tensor's array was written to after it was saved; IndexError if fewer were.
  Tensor operator[](std::size_t i) const;

 private:
  friend struct detail::Node;
  explicit Saved(const detail::Node* node) : node_(node) {}

  const detail::Node* node_;
};

/// Tells an op's rule which inputs need a gradient in this pass, and what shape they have.
/// Throws: IndexError for an input that the op does not have.
class FOVEA_API NeedsGradient {
 public:
  bool operator[](std::size_t input) const;
  /// The shape of an input that needs a gradient. Throws: GraphError if it needs none.
  const Shape& shape(std::size_t input) const;

 private:
  friend struct detail::Node;
  NeedsGradient(const detail::Node* node, std::uint64_t oldest) : node_(node), oldest_(oldest) {}

  const detail::Node* node_;
  std::uint64_t oldest_;  // the pass ends at this node; what was created before it needs no gradient
};

/// Where a view lies in its row-major base: its first element is at `offset`, and one step along axis a moves
/// by strides[a] elements. It lies inside the base, and no two of its elements are one.
struct Region {
  std::int64_t offset = 0;
  Strides strides;
};

/// What a rule returns for one input: its gradient, or nothing where none is needed. The gradient of a slice
/// may be given as the value of a region, zero elsewhere: it is added in place, so that the gradients of n
/// slices of one tensor together cost its size once.
struct Gradient {
  Gradient() = default;
  Gradient(Tensor whole) : value(std::move(whole)) {}
  Gradient(Tensor part, Region where) : value(std::move(part)), region(std::move(where)) {}

  Tensor value;
  std::optional<Region> region;
};

/// One Gradient per input.
using Gradients = SmallVector<Gradient, 3>;

/// Maps the cotangents of an op's outputs to those of its inputs. A rule that is written with ops can be
/// differentiated to any order. It captures no Tensor: what it needs is saved, so that the engine can check
/// and free it. Where an op has several outputs, the cotangents of those that were not used are undefined.
/// What a rule is given may be shared, with the caller too: writing into it is a GraphError.
using Rule = std::function<Gradients(const Saved&, std::span<const Tensor>, const NeedsGradient&)>;

/// Tensors by reference, so that recording copies no handle it does not keep.
using TensorList = std::initializer_list<std::reference_wrapper<const Tensor>>;

namespace detail {
using TensorRefs = std::span<const std::reference_wrapper<const Tensor>>;

/// How often the result of a rule can be differentiated again.
enum class Order { any, once };

/// Whether an op with these inputs gets a node in the graph. Under Anomaly, checks its values first.
FOVEA_API bool is_recorded(const char* name, std::span<const Tensor> values, TensorRefs inputs);
FOVEA_API void attach_node(const char* name, std::span<Tensor> values, TensorRefs inputs, TensorRefs saved,
                           Order order, Rule rule);

template <class F>
void record_values(const char* name, std::span<Tensor> values, TensorRefs inputs, TensorRefs saved,
                   Order order, F&& rule) {
  if (!is_recorded(name, values, inputs)) return;
  attach_node(name, values, inputs, saved, order, Rule(std::forward<F>(rule)));
}

// The Rule of an op with one output, from a function that takes the one cotangent.
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

/// The same for a rule that computes outside ops, in a loop or a library of its own: the gradient is right,
/// and differentiating that gradient throws GraphError instead of giving a silent zero.
/// See examples/op_of_another_library.cpp.
template <class F>
Tensor record_once(const char* name, Tensor value, TensorList inputs, TensorList saved, F&& rule) {
  detail::record_values(name, {&value, 1}, detail::refs(inputs), detail::refs(saved), detail::Order::once,
                        detail::single_output(std::forward<F>(rule)));
  return value;
}

// --- For users of gradients --------------------------------------------------------------------------------

struct BackwardOptions {
  Tensor gradient = {};       ///< the cotangent of the output, of its shape; may be left out for one element
  bool retain_graph = false;  ///< keep what was saved, for another pass
  bool create_graph = false;  ///< record the pass, so that gradients can be differentiated; retains the graph
};

/// Adds d output / d leaf into `grad()` of every leaf that the output depends on. If it throws, no leaf's
/// gradient has changed, and the graph is as it was.
///
/// Passes on several threads may go through one graph at once if all of them retain it. Where one does not,
/// at most one of those that meet goes through, and the others throw.
/// Throws: GraphError if nothing was recorded, the graph was freed, another pass is in it, a saved tensor was
/// written to, or a rule breaks its contract; ShapeError if the output has several elements and no gradient
/// is given.
FOVEA_API void backward(const Tensor& output, const BackwardOptions& options = {});

struct GradOptions {
  std::vector<Tensor> gradients = {};  ///< a cotangent per output; may be left out where all have one element
  bool retain_graph = false;           ///< as in BackwardOptions
  bool create_graph = false;
  bool allow_unused = false;  ///< give zeros for an input that no output depends on, instead of an error
};

/// The gradient of the outputs (of their sum, weighted by the cotangents) with respect to each input, which
/// may be a leaf or a tensor computed on the way. The `grad()` of leaves is left alone. Each result has an
/// array of its own, unless it is recorded.
/// Throws: as `backward`; GraphError for an input that no output depends on, unless that is allowed.
FOVEA_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                   const GradOptions& options = {});

/// The graph behind a tensor as Graphviz text: `dot -Tsvg`.
FOVEA_API std::string to_dot(const Tensor& output);

}  // namespace fovea
