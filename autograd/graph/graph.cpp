#include "fovea/autograd/graph/graph.h"

#include <algorithm>
#include <set>

#include "autograd/base/fail.h"
#include "autograd/graph/anomaly.h"
#include "autograd/graph/node.h"
#include "autograd/graph/thread_modes.h"

namespace fovea {
namespace detail {
namespace {

std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> counter{1};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

// A copy of the handle without the gradient accumulator: what a graph may hold of a leaf.
Ref<TensorImpl> without_accumulator(const TensorImpl& x) {
  Ref<TensorImpl> copy(new TensorImpl);
  copy->dtype = x.dtype;
  copy->output = x.output;
  copy->offset = x.offset;
  copy->buffer = x.buffer;
  copy->node = x.node;
  copy->shape = x.shape;
  copy->strides = x.strides;
  return copy;
}

SavedTensor save(const Tensor& x, std::span<TensorImpl* const> outputs) {
  SavedTensor saved;
  if (!x.defined()) return saved;
  TensorImpl& impl = impl_of(x);
  saved.version = impl.buffer->version.load(std::memory_order_relaxed);
  saved.is_output = std::ranges::find(outputs, &impl) != outputs.end();
  const bool shareable = impl.node && !impl.accumulator && !saved.is_output;
  saved.value = shareable ? Ref<TensorImpl>(&impl) : without_accumulator(impl);
  return saved;
}

}  // namespace

void retain(Node* node) noexcept { node->references.fetch_add(1, std::memory_order_relaxed); }

// Destroying a node releases its inputs. Those that are to be destroyed in turn wait in a list, so that a
// graph of any depth is torn down without deepening the stack.
void release(Node* node) noexcept {
  thread_local Node* to_destroy = nullptr;
  thread_local bool destroying = false;
  if (node->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  node->next_to_destroy = to_destroy;
  to_destroy = node;
  if (destroying) return;
  destroying = true;
  while (Node* next = to_destroy) {
    to_destroy = next->next_to_destroy;
    delete next;
  }
  destroying = false;
}

bool is_leaf(const Node& node) { return node.is_leaf(); }
const char* op_name(const Node& node) { return node.name; }

Ref<Node> make_leaf(const TensorImpl& value) {
  Ref<Node> leaf(new Node);
  leaf->name = "leaf";
  leaf->sequence = next_sequence();
  leaf->accumulator = value.accumulator;
  leaf->outputs.push_back({value.shape, value.dtype});
  return leaf;
}

bool is_recorded(const char* name, std::span<const Tensor> values, TensorRefs inputs) {
  if (modes.anomaly) check_finite(name, values, inputs);
  if (!modes.recording ||
      std::ranges::none_of(inputs, [](const Tensor& x) { return x.defined() && x.requires_grad(); })) {
    return false;
  }
  return !modes.record_hook || modes.record_hook->should_record(name, inputs);
}

void attach_node(const char* name, std::span<Tensor> values, TensorRefs inputs, TensorRefs saved, Order order,
                 Rule rule) {
  Ref<Node> node(new Node);
  node->name = name;
  node->order = order;
  node->sequence = next_sequence();
  node->rule = std::move(rule);
  for (const Tensor& input : inputs) {
    const TensorImpl* impl = TensorAccess::impl(input);
    node->edges.push_back(impl ? Edge{impl->node, impl->output} : Edge{});
  }

  SmallVector<TensorImpl*, 2> outputs;
  for (const Tensor& value : values) outputs.push_back(&impl_of(value));
  for (const Tensor& x : saved) node->saved.push_back(save(x, {outputs.data(), outputs.size()}));

  for (std::size_t i = 0; i < values.size(); ++i) {
    // An op may return an input as it is; the input must not get this node.
    const bool is_input =
        std::ranges::any_of(inputs, [&](const Tensor& x) { return TensorAccess::impl(x) == outputs[i]; });
    if (is_input || outputs[i]->node) values[i] = values[i].detach();
    TensorImpl& value = impl_of(values[i]);
    node->outputs.push_back({value.shape, value.dtype});
    value.node = node;
    value.output = static_cast<std::uint32_t>(i);
  }
}

}  // namespace detail

using detail::Node;

Tensor Saved::operator[](std::size_t i) const {
  if (i >= node_->saved.size()) {
    fail<IndexError>("[{}] its rule asks for saved tensor {}, and the number of those it saved is {}",
                     node_->name, i, node_->saved.size());
  }
  const detail::SavedTensor& saved = node_->saved[i];
  if (!saved.value) return {};
  const std::uint64_t now = saved.value->buffer->version.load(std::memory_order_relaxed);
  if (now != saved.version) {
    fail<GraphError>(
        "[{}] the tensor saved for its gradient, shape {}, was changed after it was used (version {} "
        "then, {} now)",
        node_->name, to_string(saved.value->shape), saved.version, now);
  }
  if (!saved.is_output) return detail::TensorAccess::handle(saved.value);
  detail::Ref<detail::TensorImpl> rejoined = detail::without_accumulator(*saved.value);
  rejoined->node = detail::Ref<Node>(const_cast<Node*>(node_));
  return detail::TensorAccess::handle(std::move(rejoined));
}

bool NeedsGradient::operator[](std::size_t input) const {
  if (input >= node_->edges.size()) {
    fail<IndexError>("[{}] its rule asks about input {}, and the number of its inputs is {}", node_->name,
                     input, node_->edges.size());
  }
  const detail::Edge& edge = node_->edges[input];
  return edge.node && edge.node->sequence >= oldest_;
}

const Shape& NeedsGradient::shape(std::size_t input) const {
  if (!(*this)[input]) {
    fail<GraphError>("[{}] its rule asks for the shape of input {}, which needs no gradient", node_->name,
                     input);
  }
  const detail::Edge& edge = node_->edges[input];
  return edge.node->outputs[edge.output].shape;
}

std::string to_dot(const Tensor& output) {
  std::string dot = "digraph fovea {\n  rankdir = BT;\n  node [shape = box];\n";
  std::set<const Node*> seen;
  std::vector<const Node*> waiting;
  const auto visit = [&](const Node* node) {
    if (node && seen.insert(node).second) waiting.push_back(node);
  };
  visit(detail::impl_of(output).node.get());
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    const detail::OutputInfo& info = node->outputs[0];
    dot += fmt::format("  n{} [label = \"{}\\n{} {}\"{}];\n", node->sequence, node->name, name_of(info.dtype),
                       to_string(info.shape), node->is_leaf() ? ", style = filled" : "");
    for (const detail::Edge& edge : node->edges) {
      if (edge.node) dot += fmt::format("  n{} -> n{};\n", edge.node->sequence, node->sequence);
      visit(edge.node.get());
    }
  }
  return dot + "}\n";
}

}  // namespace fovea
