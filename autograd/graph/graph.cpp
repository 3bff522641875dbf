#include "fovea/autograd/graph/graph.h"

#include <cmath>
#include <set>

#include "autograd/base/fail.h"
#include "autograd/graph/node.h"
#include "autograd/kernels/strided.h"

namespace fovea {
namespace detail {
namespace {

thread_local bool recording_on = true;
thread_local bool anomaly_on = false;
thread_local const std::vector<Tensor>* recorded_later = nullptr;

std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> counter{1};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

// x's value without its gradient slot: what a graph may hold of a leaf.
Ref<TensorImpl> without_slot(const TensorImpl& x) {
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
  const TensorImpl& impl = impl_of(x);
  saved.version = impl.buffer->version.load(std::memory_order_relaxed);
  saved.is_output = std::ranges::find(outputs, &impl) != outputs.end();
  const bool shareable = impl.node && !impl.slot && !saved.is_output;
  saved.value = shareable ? Ref<TensorImpl>(x.impl()) : without_slot(impl);
  return saved;
}

// The first element that is not finite, as "nan at (0, 3)"; empty if all are. With `nan_only`, infinity
// passes.
std::string find_nonfinite(const Tensor& x, bool nan_only = false) {
  std::string found;
  Shape position(x.rank(), 0);
  dispatch(x.dtype(), [&]<class T>() {
    const T* data = x.data<T>();
    kernels::for_each_offset(x.shape(), x.strides(), [&](std::int64_t offset) {
      if (!found.empty()) return;
      const T value = data[offset];
      if (std::isnan(value) || (!nan_only && std::isinf(value))) {
        found = fmt::format("{} at {}", value, to_string(position));
      }
      for (std::size_t axis = position.size(); axis-- > 0;) {
        if (++position[axis] < x.shape()[axis]) break;
        position[axis] = 0;
      }
    });
  });
  return found;
}

}  // namespace

void retain(Node* node) noexcept { node->references.fetch_add(1, std::memory_order_relaxed); }

// Destroying a node releases its inputs. They are queued, not destroyed from within, so that a chain of any
// length is torn down without deepening the stack.
void release(Node* node) noexcept {
  thread_local Node* doomed = nullptr;
  thread_local bool destroying = false;
  if (node->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  node->next_doomed = doomed;
  doomed = node;
  if (destroying) return;
  destroying = true;
  while (Node* next = doomed) {
    doomed = next->next_doomed;
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
  leaf->slot = value.slot;
  leaf->outputs.push_back({value.shape, value.dtype});
  return leaf;
}

bool set_recording(bool on) { return std::exchange(recording_on, on); }
bool set_anomaly_mode(bool on) { return std::exchange(anomaly_on, on); }
const std::vector<Tensor>* set_recorded_later(const std::vector<Tensor>* inputs) {
  return std::exchange(recorded_later, inputs);
}

void check_recorded_later(const char* op, const std::vector<Tensor>& inputs, const Tensor& x) {
  const TensorImpl& impl = impl_of(x);
  const auto is_x = [&](const Tensor& input) {
    return input.impl()->node == impl.node && input.impl()->output == impl.output;
  };
  if (!impl.node || std::ranges::any_of(inputs, is_x)) return;
  fail<GraphError>(
      "[checkpoint] '{}' uses a tensor of shape {} that requires a gradient and is not an input of the "
      "checkpoint, so its gradient would be lost: pass it as an input, or the layer it belongs to",
      op, to_string(impl.shape));
}

bool needs_recording(TensorRefs inputs) {
  if (!recording_on) return false;
  return std::ranges::any_of(inputs, [](const Tensor& x) { return x.defined() && x.requires_grad(); });
}

void attach_node(const char* name, std::span<Tensor> values, TensorRefs inputs, TensorRefs saved, Order order,
                 Rule rule) {
  if (recorded_later) {
    for (const Tensor& input : inputs) {
      if (input.defined()) check_recorded_later(name, *recorded_later, input);
    }
    return;
  }
  Ref<Node> node(new Node);
  node->name = name;
  node->order = order;
  node->sequence = next_sequence();
  node->rule = std::move(rule);
  for (const Tensor& input : inputs) {
    node->edges.push_back(input.defined() ? Edge{input.impl()->node, input.impl()->output} : Edge{});
  }

  SmallVector<TensorImpl*, 2> outputs;
  for (const Tensor& value : values) outputs.push_back(&impl_of(value));
  for (const Tensor& x : saved) node->saved.push_back(save(x, {outputs.data(), outputs.size()}));

  for (std::size_t i = 0; i < values.size(); ++i) {
    // An op may return an input as it is; the input must not get this node.
    const bool is_input =
        std::ranges::any_of(inputs, [&](const Tensor& x) { return x.impl() == outputs[i]; });
    if (is_input || outputs[i]->node) values[i] = values[i].detach();
    TensorImpl& value = *values[i].impl();
    node->outputs.push_back({value.shape, value.dtype});
    value.node = node;
    value.output = static_cast<std::uint32_t>(i);
  }
}

bool anomaly_mode() { return anomaly_on; }

void check_finite(const char* name, std::span<const Tensor> values, TensorRefs inputs) {
  for (const Tensor& value : values) {
    const std::string found = find_nonfinite(value);
    if (found.empty()) continue;
    bool infinite_input = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].get().defined()) continue;
      const std::string nan_input = find_nonfinite(inputs[i], true);
      if (!nan_input.empty()) {
        fail<NonFiniteError>("[{}] its input {}, shape {}, is not finite: {}", name, i,
                             to_string(inputs[i].get().shape()), nan_input);
      }
      infinite_input = infinite_input || !find_nonfinite(inputs[i]).empty();
    }
    if (infinite_input && find_nonfinite(value, true).empty()) continue;
    fail<NonFiniteError>("[{}] its value, shape {}, turned non-finite: {}", name, to_string(value.shape()),
                         found);
  }
}

}  // namespace detail

using detail::Node;

Tensor Saved::operator[](std::size_t i) const {
  const detail::SavedTensor& saved = node_->saved[i];
  if (!saved.value) return {};
  const std::uint64_t now = saved.value->buffer->version.load(std::memory_order_relaxed);
  if (now != saved.version) {
    fail<GraphError>(
        "[{}] the tensor saved for its gradient, shape {}, was changed after it was used (version {} "
        "then, {} now)",
        node_->name, to_string(saved.value->shape), saved.version, now);
  }
  if (!saved.is_output) return Tensor(saved.value);
  detail::Ref<detail::TensorImpl> joined = detail::without_slot(*saved.value);
  joined->node = detail::Ref<Node>(const_cast<Node*>(node_));
  return Tensor(std::move(joined));
}

bool NeedsGradient::operator[](std::size_t input) const {
  const detail::Edge& edge = node_->edges[input];
  return edge.node && edge.node->sequence >= oldest_;
}

const Shape& NeedsGradient::shape(std::size_t input) const {
  const detail::Edge& edge = node_->edges[input];
  return edge.node->outputs[edge.output].shape;
}

bool recording() { return detail::recording_on; }

NoGrad::NoGrad() : before_(detail::set_recording(false)) {}
NoGrad::~NoGrad() { detail::set_recording(before_); }

Anomaly::Anomaly() : before_(detail::set_anomaly_mode(true)) {}
Anomaly::~Anomaly() { detail::set_anomaly_mode(before_); }

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
