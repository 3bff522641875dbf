#include <algorithm>
#include <limits>
#include <map>
#include <memory_resource>
#include <unordered_map>

#include "autograd/base/fail.h"
#include "autograd/graph/accumulate.h"
#include "autograd/graph/anomaly.h"
#include "autograd/graph/node.h"
#include "autograd/graph/running_rule.h"
#include "autograd/graph/thread_modes.h"

namespace fovea {
namespace detail {
namespace {

// A node whose turn is still to come.
struct Pending {
  Ref<Node> node;
  SmallVector<Cotangent, 1> cotangents;  // one per output
};

// How a pass goes about.
struct PassOptions {
  bool retain_graph = false;
  bool create_graph = false;
  std::uint64_t oldest = 0;  // the sequence number of the node at which the pass ends
};

/// One backward pass: nodes wait for their cotangents and run newest first. Every use of a value is newer
/// than the value, so when a node's turn comes its cotangent is complete.
///
/// While it lives, ops are recorded only if the pass itself is to be differentiated. They are not checked by
/// Anomaly, which judges the gradients that rules return and not what they compute on the way, such as an
/// infinity that is multiplied by an exact zero.
class Pass {
 public:
  explicit Pass(const PassOptions& options)
      : recording_(modes.recording, options.create_graph),
        anomaly_(modes.anomaly, false),
        retain_graph_(options.retain_graph || options.create_graph),
        create_graph_(options.create_graph),
        oldest_(options.oldest) {}
  ~Pass() {
    for (const Ref<Node>& node : claimed_) node->use.end_claim();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // Starts from an output, with the cotangent given or 1.
  void seed(const Tensor& output, const Tensor& gradient) {
    const TensorImpl& impl = impl_of(output);
    if (!impl.node) {
      fail<GraphError>("[backward] nothing to differentiate: the value of shape {} was not recorded, as {}",
                       to_string(impl.shape), why_not_recorded());
    }
    if (!gradient.defined() && output.numel() != 1) {
      fail<ShapeError>("[backward] the output has shape {}: give its gradient, or reduce it to one element",
                       to_string(impl.shape));
    }
    const Tensor cotangent = gradient.defined() ? gradient : ones(impl.shape, impl.dtype);
    if (cotangent.shape() != impl.shape || cotangent.dtype() != impl.dtype) {
      fail<ShapeError>("[backward] the gradient given is {} {}, the output {} {}", name_of(cotangent.dtype()),
                       to_string(cotangent.shape()), name_of(impl.dtype), to_string(impl.shape));
    }
    add_to(impl.node, impl.output, cotangent);
  }

  // For each node, once its cotangents are complete: calls arrive(pending), then runs the rule of the node
  // and hands the gradients to its inputs.
  template <class Arrive>
  void run(const Arrive& arrive) {
    while (!waiting_.empty()) {
      Pending pending = take_newest();
      Node& node = *pending.node;
      arrive(pending);
      if (node.is_leaf() || node.sequence <= oldest_) continue;
      take_for_pass(node, retain_graph_);
      if (retain_graph_) {
        const EndShare end{node};
        run_rule(node, pending);
      } else {
        claimed_.push_back(std::move(pending.node));
        run_rule(node, pending);
      }
    }
  }

  // Frees the graph of a pass in which all went well. Until then it is as it was, so that a pass that throws
  // can be tried again.
  void finish() {
    for (const Ref<Node>& node : claimed_) {
      node->use.free();
      node->rule = nullptr;
      node->saved.clear();
      node->edges.clear();
    }
    claimed_.clear();
  }

 private:
  Pending take_newest() {
    const auto newest = waiting_.begin();
    Pending taken = std::move(newest->second);
    waiting_.erase(newest);
    return taken;
  }

  struct EndShare {
    Node& node;
    ~EndShare() { node.use.end_share(); }
  };

  const char* why_not_recorded() const {
    if (recording_.before()) {
      return "no tensor that it was computed from requires a gradient, or it was computed inside NoGrad";
    }
    if (!modes.running_rule) return "no op is inside NoGrad";
    return "an op inside a rule is only under {.create_graph = true}; vjp and jvp work there too";
  }

  void run_rule(const Node& node, const Pending& pending) {
    SmallVector<Tensor, 1> totals;
    for (const Cotangent& cotangent : pending.cotangents) totals.push_back(cotangent.total());
    const std::span<const Tensor> cotangents(totals.data(), totals.size());
    const RunningRule running{&node, cotangents, modes.running_rule};
    const ScopedValue<const RunningRule*> scope(modes.running_rule, &running);
    const bool once = node.order == Order::once && create_graph_;
    const Gradients gradients = once ? gradients_of_once(node, cotangents) : gradients_of(node, cotangents);
    check(node, gradients);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (needs(node)[i]) add_to(node.edges[i].node, node.edges[i].output, gradients[i]);
    }
  }

  NeedsGradient needs(const Node& node) const { return node.needs_gradient(oldest_); }

  Gradients gradients_of(const Node& node, std::span<const Tensor> cotangents) const {
    return node.rule(node.saved_tensors(), cotangents, needs(node));
  }

  // The gradients of an op whose rule computes outside ops, recorded so that differentiating them throws.
  Gradients gradients_of_once(const Node& node, std::span<const Tensor> cotangents) const {
    Gradients gradients;
    {
      const NoGrad scope;
      gradients = gradients_of(node, cotangents);
    }
    std::vector<Tensor> sources(cotangents.begin(), cotangents.end());
    for (std::size_t i = 0; i < node.saved.size(); ++i) sources.push_back(node.saved_tensors()[i]);
    const std::vector<std::reference_wrapper<const Tensor>> inputs(sources.begin(), sources.end());
    if (!is_recorded(node.name, {}, inputs)) return gradients;
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
      if (needs(node)[i]) check_gradient(node, i, gradients[i]);
    }
  }

  void check_gradient(const Node& node, std::size_t i, const Gradient& gradient) const {
    const Tensor& value = gradient.value;
    if (!value.defined()) {
      fail<GraphError>("[{}] its rule returned no gradient for input {}, which needs one", node.name, i);
    }
    const OutputInfo& input = node.edges[i].node->outputs[node.edges[i].output];
    if (gradient.region && !fits(*gradient.region, value.shape(), numel(input.shape))) {
      fail<GraphError>(
          "[{}] its rule returned a gradient {} for a region that is not inside input {}, or meets itself: "
          "offset {}, strides {}, input {}",
          node.name, to_string(value.shape()), i, gradient.region->offset,
          to_string(gradient.region->strides), to_string(input.shape));
    }
    const bool whole = gradient.region || value.shape() == input.shape;
    if (!whole || value.dtype() != input.dtype) {
      fail<GraphError>("[{}] its rule returned a gradient {} {} for input {}, which is {} {}", node.name,
                       name_of(value.dtype()), to_string(value.shape()), i, name_of(input.dtype),
                       to_string(input.shape));
    }
    if (!anomaly_.before()) return;
    if (const std::string found = find_nonfinite(value); !found.empty()) {
      fail<NonFiniteError>("[{}] the gradient of its input {}, shape {}, turned non-finite: {}", node.name, i,
                           to_string(value.shape()), found);
    }
  }

  void add_to(const Ref<Node>& node, std::uint32_t output, const Gradient& gradient) {
    Pending& pending = waiting_[node->sequence];
    if (!pending.node) {
      pending.node = node;
      pending.cotangents.resize(node->outputs.size());
    }
    pending.cotangents[output].add(gradient, node->outputs[output], create_graph_);
  }

  ScopedValue<bool> recording_;
  ScopedValue<bool> anomaly_;
  bool retain_graph_;
  bool create_graph_;
  std::uint64_t oldest_;
  std::vector<Ref<Node>> claimed_;  // whose rules have run, or run now, in a pass that frees the graph
  std::pmr::unsynchronized_pool_resource nodes_of_map_;
  std::pmr::map<std::uint64_t, Pending, std::greater<>> waiting_{&nodes_of_map_};
};

// Throws: what is wrong with a call of `grad`, before anything is computed.
void check_grad_call(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                     const GradOptions& options) {
  if (!options.gradients.empty() && options.gradients.size() != outputs.size()) {
    fail<ValueError>("[grad] {} gradients given for {} outputs", options.gradients.size(), outputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad()) continue;
    fail<GraphError>(
        "[grad] input {}, shape {}, does not require a gradient: call set_requires_grad before computing "
        "with "
        "it",
        i, to_string(inputs[i].shape()));
  }
}

// Gives zeros for the inputs that no cotangent reached.
void fill_unused(std::vector<Tensor>& gradients, const std::vector<Tensor>& inputs, bool allow_unused) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined()) continue;
    if (!allow_unused) {
      fail<GraphError>(
          "[grad] no output depends on input {}, shape {}; pass {{.allow_unused = true}} for zeros", i,
          to_string(inputs[i].shape()));
    }
    gradients[i] = zeros(inputs[i].shape(), inputs[i].dtype());
  }
}

}  // namespace
}  // namespace detail

using detail::Node;
using detail::Pass;
using detail::Pending;

void backward(const Tensor& output, const BackwardOptions& options) {
  Pass pass({.retain_graph = options.retain_graph, .create_graph = options.create_graph});
  pass.seed(output, options.gradient);
  std::vector<std::pair<detail::Ref<Node>, Tensor>> leaves;
  pass.run([&](const Pending& pending) {
    if (pending.node->is_leaf()) leaves.emplace_back(pending.node, pending.cotangents[0].total());
  });
  pass.finish();
  for (auto& [leaf, gradient] : leaves) {
    detail::add_to_leaf(*leaf->accumulator, std::move(gradient), options.create_graph);
  }
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  detail::check_grad_call(outputs, inputs, options);
  if (inputs.empty()) return {};
  std::unordered_multimap<const Node*, std::size_t> inputs_of;  // by the node that computed them
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node* node = detail::impl_of(inputs[i]).node.get();
    inputs_of.emplace(node, i);
    oldest = std::min(oldest, node->sequence);
  }

  Pass pass({.retain_graph = options.retain_graph, .create_graph = options.create_graph, .oldest = oldest});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (options.allow_unused && !outputs[i].requires_grad()) continue;
    pass.seed(outputs[i], options.gradients.empty() ? Tensor() : options.gradients[i]);
  }
  std::vector<Tensor> gradients(inputs.size());
  pass.run([&](const Pending& pending) {
    const auto [first, last] = inputs_of.equal_range(pending.node.get());
    for (auto at = first; at != last; ++at) {
      const std::size_t i = at->second;
      gradients[i] = pending.cotangents[detail::impl_of(inputs[i]).output].total();
    }
  });
  detail::fill_unused(gradients, inputs, options.allow_unused);
  pass.finish();
  if (!options.create_graph) {
    for (Tensor& gradient : gradients) gradient = detail::with_own_array(std::move(gradient));
  }
  return gradients;
}

}  // namespace fovea
