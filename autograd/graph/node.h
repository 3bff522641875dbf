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

/// Which passes may run the rule of a node. Passes that retain the graph run it side by side. A pass that
/// frees the graph has the node to itself, from when it reaches the node until it ends.
class NodeUse {
 public:
  enum class Found { open, in_use, freed };

  /// Both change something only where they return `open`.
  Found share() noexcept {
    std::int32_t passes = passes_.load(std::memory_order_relaxed);
    do {
      if (passes < 0) return passes == freed ? Found::freed : Found::in_use;
    } while (!passes_.compare_exchange_weak(passes, passes + 1, std::memory_order_acquire));
    return Found::open;
  }
  Found claim() noexcept {
    std::int32_t passes = 0;
    if (passes_.compare_exchange_strong(passes, claimed, std::memory_order_acquire)) return Found::open;
    return passes == freed ? Found::freed : Found::in_use;
  }

  void end_share() noexcept { passes_.fetch_sub(1, std::memory_order_release); }
  void end_claim() noexcept { passes_.store(0, std::memory_order_release); }
  void free() noexcept { passes_.store(freed, std::memory_order_release); }

 private:
  static constexpr std::int32_t claimed = -1, freed = -2;
  std::atomic<std::int32_t> passes_{0};  // how many share it now, or one of these
};

/// One recorded op, or a leaf, which has neither inputs nor a rule.
struct Node {
  std::atomic<std::int32_t> references{0};
  NodeUse use;
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
