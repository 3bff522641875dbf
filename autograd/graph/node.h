#pragma once

#include <atomic>
#include <cstdint>

#include "autograd/base/pool.h"
#include "autograd/tensor/tensor_impl.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea::detail {

/// An op's input as the graph sees it: the node that computed it, not its value.
struct Edge {
  Ref<Node> node;  // none: needs no gradient
  std::uint32_t output = 0;
};

/// A value that an op keeps for its rule. A value in the graph keeps its node, but never a leaf's gradient.
/// An op's own output keeps no node, since the node would own itself; it is rejoined when the rule asks for
/// it.
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

/// One recorded op, or a leaf, which has neither inputs nor a rule.
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
  Ref<GradAccumulator> accumulator;  // leaves only
  Node* next_to_destroy = nullptr;   // links the nodes that are about to be destroyed

  bool is_leaf() const { return static_cast<bool>(accumulator); }

  /// What the rule may ask for, in a pass that ends at the node with that sequence number.
  Saved saved_tensors() const { return Saved(this); }
  NeedsGradient needs_gradient(std::uint64_t oldest) const { return {this, oldest}; }

  static void* operator new(std::size_t bytes) { return pool::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) { pool::deallocate(memory, bytes); }
};

}  // namespace fovea::detail
