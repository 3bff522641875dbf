#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "autograd/base/pool.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea::detail {

/// An op's input as the graph sees it: the node that computed it, not its value.
struct Edge {
  Ref<Node> node;  // none: needs no gradient
  std::uint32_t output = 0;
};

/// A value an op keeps for its rule. Values in the graph keep their node, but never a leaf's gradient, and an
/// op's own output keeps no node (it would own itself): it is rejoined when the rule asks for it.
struct SavedTensor {
  Ref<TensorImpl> value;  // none: an undefined Tensor was saved
  std::uint64_t version = 0;
  bool is_output = false;
};

/// What is known of a node's output without keeping its value.
struct OutputInfo {
  Shape shape;
  Dtype dtype = f32;
};

/// One recorded op, or a leaf (an op without inputs or rule).
struct Node {
  std::atomic<std::int32_t> references{0};
  bool freed = false;
  Order order = Order::any;
  const char* name = "";
  std::uint64_t sequence = 0;  // order of creation: a node's inputs all have lower numbers
  SmallVector<Edge, 2> edges;
  SmallVector<SavedTensor, 2> saved;
  SmallVector<OutputInfo, 1> outputs;
  Rule rule;
  Ref<GradAccumulator> slot;    // leaves only
  Node* next_doomed = nullptr;  // in the list of nodes about to be destroyed

  bool is_leaf() const { return static_cast<bool>(slot); }

  static void* operator new(std::size_t bytes) { return pool::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) { pool::deallocate(memory, bytes); }
};

/// While it is set, ops on this thread are not recorded, since they will be run again (`checkpoint`): one
/// that would be may have only these tensors as inputs that need a gradient. Returns what was set before.
const std::vector<Tensor>* set_recorded_later(const std::vector<Tensor>* inputs);
/// Throws GraphError, naming `op`, if x needs a gradient and is not one of them.
void check_recorded_later(const char* op, const std::vector<Tensor>& inputs, const Tensor& x);

/// Sets whether ops on this thread record, or check their values for Anomaly; returns what it was.
bool set_recording(bool on);
bool set_anomaly_mode(bool on);

}  // namespace fovea::detail
