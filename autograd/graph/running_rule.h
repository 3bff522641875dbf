#pragma once

#include <span>

#include "fovea/autograd/graph/graph.h"

// What goes on while the rule of a node runs, and who may run it.
namespace fovea::detail {

/// A rule that runs on this thread, and what it may read but not write.
struct RunningRule {
  const Node* node;
  std::span<const Tensor> cotangents;
  const RunningRule* outer;  // whose rule started the pass that runs this one
};

/// Marks a node as in use by a backward pass that is about to run its rule. `shared`: the pass retains the
/// graph, so other such passes may use the node at the same time.
/// Throws: GraphError if its graph was freed, another pass has it, or its rule is what started the pass.
void take_for_pass(Node& node, bool shared);

}  // namespace fovea::detail
