#include <map>
#include <memory_resource>
#include <mutex>

#include "autograd/base/fail.h"
#include "autograd/graph/accumulate.h"
#include "autograd/graph/node.h"

namespace fovea {
namespace detail {
namespace {

// The cotangent of one output, added up from its uses.
struct Cotangent {
  Tensor total;
  bool owned = false;  // made here, so it may be added to in place
};

struct Pending {
  Ref<Node> node;
  SmallVector<Cotangent, 1> cotangents;  // one per output
};

bool has_one_owner(const Tensor& x) {
  return x.impl()->references.load() == 1 && x.impl()->buffer->references.load() == 1 && x.is_contiguous();
}

// The same values in an array of its own: one cotangent may be the result for several inputs, or be the
// caller's, and changing one must leave the others.
Tensor with_own_array(Tensor gradient) {
  if (has_one_owner(gradient)) return gradient;
  Tensor copy = zeros(gradient.shape(), gradient.dtype());
  add_in_place(copy, gradient);
  return copy;
}

// How ops behave during a pass: recorded if the pass itself is to be differentiated, and not watched by
// Anomaly, which judges the gradients that rules return and not what they compute on the way (an infinity
// that a zero annihilates).
class PassScope {
 public:
  explicit PassScope(bool create_graph)
      : recorded_(set_recording(create_graph)), watched_(set_anomaly_mode(false)) {}
  ~PassScope() {
    set_recording(recorded_);
    set_anomaly_mode(watched_);
  }
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;

  bool watched() const { return watched_; }

 private:
  bool recorded_;
  bool watched_;
};

/// One backward pass: nodes wait for their cotangents and run newest first. Every use of a value is newer
/// than the value, so when a node's turn comes its cotangent is complete.
class Pass {
 public:
  Pass(bool retain_graph, bool create_graph, std::uint64_t oldest = 0)
      : scope_(create_graph),
        retain_graph_(retain_graph || create_graph),
        create_graph_(create_graph),
        oldest_(oldest) {}

  void seed(const Tensor& output, const Tensor& gradient) {
    const TensorImpl& impl = impl_of(output);
    if (!impl.node) {
      fail<GraphError>(
          "[backward] nothing to differentiate: no tensor that this value of shape {} was computed from "
          "requires a gradient",
          to_string(impl.shape));
    }
    Tensor cotangent = gradient;
    if (!cotangent.defined()) {
      if (output.numel() != 1) {
        fail<ShapeError>("[backward] the output has shape {}: give its gradient, or reduce it to one element",
                         to_string(impl.shape));
      }
      cotangent = ones(impl.shape, impl.dtype);
    }
    if (cotangent.shape() != impl.shape || cotangent.dtype() != impl.dtype) {
      fail<ShapeError>("[backward] the gradient given is {} {}, the output {} {}", name_of(cotangent.dtype()),
                       to_string(cotangent.shape()), name_of(impl.dtype), to_string(impl.shape));
    }
    add_to(impl.node, impl.output, cotangent);
  }

  // Takes the newest node that waits. Its cotangents are complete.
  bool next(Pending& taken) {
    if (waiting_.empty()) return false;
    const auto newest = waiting_.begin();
    taken = std::move(newest->second);
    waiting_.erase(newest);
    return true;
  }

  // Runs the rule of a node and hands the gradients to its inputs.
  void run(const Pending& pending) {
    const Node& node = *pending.node;
    if (node.freed) {
      throw GraphError(
          "[backward] this graph was freed by an earlier backward; pass {.retain_graph = true} there to "
          "use it twice");
    }
    SmallVector<Tensor, 1> cotangents;
    for (const Cotangent& cotangent : pending.cotangents) cotangents.push_back(cotangent.total);
    Gradients gradients = run_rule(node, {cotangents.data(), cotangents.size()});
    check(node, gradients);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (needs(node)[i]) add_to(node.edges[i].node, node.edges[i].output, gradients[i]);
    }
    if (!retain_graph_) finished_.push_back(pending.node);
  }

  // Ends a pass that has come through: only now is the graph freed, so one that throws can be tried again.
  void finish() {
    for (const Ref<Node>& node : finished_) {
      node->freed = true;
      node->rule = nullptr;
      node->saved.clear();
      node->edges.clear();
    }
  }

 private:
  NeedsGradient needs(const Node& node) const { return {&node, oldest_}; }

  Gradients run_rule(const Node& node, std::span<const Tensor> cotangents) const {
    const Saved saved(&node);
    if (node.order == Order::any || !create_graph_) return node.rule(saved, cotangents, needs(node));
    Gradients gradients;
    {
      NoGrad fixed;
      gradients = node.rule(saved, cotangents, needs(node));
    }
    std::vector<Tensor> depends_on;
    for (const Tensor& cotangent : cotangents) {
      if (cotangent.defined()) depends_on.push_back(cotangent);
    }
    for (std::size_t i = 0; i < node.saved.size(); ++i) depends_on.push_back(saved[i]);
    const std::vector<std::reference_wrapper<const Tensor>> inputs(depends_on.begin(), depends_on.end());
    if (!needs_recording(inputs)) return gradients;
    for (Gradient& gradient : gradients) {
      if (!gradient.value.defined()) continue;
      attach_node(
          node.name, {&gradient.value, 1}, inputs, {}, Order::any,
          [name = node.name](const Saved&, std::span<const Tensor>, const NeedsGradient&) -> Gradients {
            fail<GraphError>(
                "[{}] its gradient was computed outside ops, so it can't be differentiated again", name);
          });
    }
    return gradients;
  }

  void check(const Node& node, const Gradients& gradients) const {
    if (gradients.size() != node.edges.size()) {
      fail<GraphError>("[{}] its rule returned {} gradients for {} inputs", node.name, gradients.size(),
                       node.edges.size());
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!needs(node)[i]) continue;
      const Tensor& value = gradients[i].value;
      if (!value.defined()) {
        fail<GraphError>("[{}] its rule returned no gradient for input {}, which needs one", node.name, i);
      }
      const OutputInfo& input = node.edges[i].node->outputs[node.edges[i].output];
      const bool fits = gradients[i].region || value.shape() == input.shape;
      if (!fits || value.dtype() != input.dtype) {
        fail<GraphError>("[{}] its rule returned a gradient {} {} for input {}, which is {} {}", node.name,
                         name_of(value.dtype()), to_string(value.shape()), i, name_of(input.dtype),
                         to_string(input.shape));
      }
      if (scope_.watched()) check_gradient(node, i, value);
    }
  }

  static void check_gradient(const Node& node, std::size_t input, const Tensor& value) {
    try {
      check_finite(node.name, {&value, 1}, {});
    } catch (const NonFiniteError&) {
      fail<NonFiniteError>("[{}] the gradient of its input {}, shape {}, turned non-finite", node.name, input,
                           to_string(value.shape()));
    }
  }

  void add_to(const Ref<Node>& node, std::uint32_t output, const Gradient& gradient) {
    Pending& pending = waiting_[node->sequence];
    if (!pending.node) {
      pending.node = node;
      pending.cotangents.resize(node->outputs.size());
    }
    accumulate(pending.cotangents[output], gradient, node->outputs[output]);
  }

  void accumulate(Cotangent& cotangent, const Gradient& gradient, const OutputInfo& info) const {
    Tensor& total = cotangent.total;
    if (create_graph_) {
      const Tensor whole =
          gradient.region ? scatter_region(gradient.value, info.shape, *gradient.region) : gradient.value;
      total = total.defined() ? add(total, whole) : whole;
      return;
    }
    if (gradient.region) {
      if (!cotangent.owned) {
        const Tensor before = std::exchange(total, zeros(info.shape, info.dtype));
        if (before.defined()) add_in_place(total, before);
        cotangent.owned = true;
      }
      const Region& region = *gradient.region;
      add_in_place(view_of(total, gradient.value.shape(), region.strides, region.offset), gradient.value);
    } else if (!total.defined()) {
      total = gradient.value;
    } else if (cotangent.owned) {
      add_in_place(total, gradient.value);
    } else {
      total = add(total, gradient.value);
      cotangent.owned = true;
    }
  }

  PassScope scope_;
  bool retain_graph_;
  bool create_graph_;
  std::uint64_t oldest_;
  std::vector<Ref<Node>> finished_;
  std::pmr::unsynchronized_pool_resource nodes_of_map_;
  std::pmr::map<std::uint64_t, Pending, std::greater<>> waiting_{&nodes_of_map_};
};

// Adds a pass's result to a leaf's gradient.
void add_to_leaf(GradAccumulator& slot, Tensor gradient, bool create_graph) {
  Tensor replaced;  // destroyed outside the lock
  std::lock_guard lock(slot.mutex);
  if (slot.dropped) return;
  Tensor& held = slot.gradient;
  if (!held.defined()) {
    held = create_graph ? std::move(gradient) : with_own_array(std::move(gradient));
  } else if (!create_graph && !held.requires_grad() && has_one_owner(held)) {
    add_in_place(held, gradient);
  } else {
    replaced = std::exchange(held, add(held, gradient));
  }
}

}  // namespace
}  // namespace detail

using detail::Node;
using detail::Pending;

void backward(const Tensor& output, const BackwardOptions& options) {
  detail::Pass pass(options.retain_graph, options.create_graph);
  pass.seed(output, options.gradient);

  std::vector<std::pair<detail::Ref<Node>, Tensor>> leaves;
  Pending pending;
  while (pass.next(pending)) {
    if (pending.node->is_leaf()) {
      leaves.emplace_back(std::move(pending.node), std::move(pending.cotangents[0].total));
    } else {
      pass.run(pending);
    }
    pending = {};
  }
  pass.finish();
  for (auto& [leaf, gradient] : leaves) {
    detail::add_to_leaf(*leaf->slot, std::move(gradient), options.create_graph);
  }
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  if (!options.gradients.empty() && options.gradients.size() != outputs.size()) {
    fail<ValueError>("[grad] {} gradients given for {} outputs", options.gradients.size(), outputs.size());
  }
  if (inputs.empty()) return {};

  // Inputs by the order in which the pass meets them.
  struct Target {
    const Node* node;
    std::uint32_t output;
    std::size_t index;
  };
  std::vector<Target> targets;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const detail::TensorImpl& impl = detail::impl_of(inputs[i]);
    if (!impl.node) {
      fail<GraphError>(
          "[grad] input {}, shape {}, does not require a gradient: call set_requires_grad before "
          "computing with it",
          i, to_string(impl.shape));
    }
    targets.push_back({impl.node.get(), impl.output, i});
  }
  std::ranges::sort(targets, std::greater<>(), [](const Target& target) { return target.node->sequence; });

  detail::Pass pass(options.retain_graph, options.create_graph, targets.back().node->sequence);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (options.allow_unused && !outputs[i].requires_grad()) continue;
    pass.seed(outputs[i], options.gradients.empty() ? Tensor() : options.gradients[i]);
  }

  std::vector<Tensor> gradients(inputs.size());
  auto target = targets.begin();
  Pending pending;
  while (target != targets.end() && pass.next(pending)) {
    const Node* node = pending.node.get();
    while (target != targets.end() && target->node->sequence > node->sequence) ++target;
    for (; target != targets.end() && target->node == node; ++target) {
      gradients[target->index] = pending.cotangents[target->output].total;
    }
    if (target != targets.end() && !node->is_leaf()) pass.run(pending);
    pending = {};
  }

  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) continue;
    if (!options.allow_unused) {
      fail<GraphError>(
          "[grad] no output depends on input {}, shape {}; pass {{.allow_unused = true}} for zeros", i,
          to_string(inputs[i].shape()));
    }
    gradients[i] = zeros(inputs[i].shape(), inputs[i].dtype());
  }
  pass.finish();
  if (!options.create_graph) {
    for (Tensor& gradient : gradients) gradient = detail::with_own_array(std::move(gradient));
  }
  return gradients;
}

}  // namespace fovea
