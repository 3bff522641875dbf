#include "autograd/graph/running_rule.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "autograd/graph/node.h"
#include "autograd/graph/thread_modes.h"

namespace fovea::detail {

void take_for_pass(Node& node, bool shared) {
  for (const RunningRule* rule = modes.running_rule; rule; rule = rule->outer) {
    if (rule->node == &node) fail<GraphError>("[{}] its rule runs backward through the op itself", node.name);
  }
  const NodeUse::Found found = shared ? node.use.share() : node.use.claim();
  if (found == NodeUse::Found::freed) {
    throw GraphError(
        "[backward] this graph was freed by an earlier backward; pass {.retain_graph = true} there to use it "
        "twice");
  }
  if (found == NodeUse::Found::in_use) {
    fail<GraphError>(
        "[backward] two passes run through '{}' at once, around each other or on two threads, and one of "
        "them "
        "frees the graph: pass {{.retain_graph = true}} to both",
        node.name);
  }
}

void check_no_rule_reads(const Buffer& array) {
  const auto holds = [&](const TensorImpl* impl) { return impl && impl->buffer.get() == &array; };
  for (const RunningRule* rule = modes.running_rule; rule; rule = rule->outer) {
    const bool cotangent = std::ranges::any_of(
        rule->cotangents, [&](const Tensor& dy) { return holds(TensorAccess::impl(dy)); });
    const bool saved =
        std::ranges::any_of(rule->node->saved, [&](const SavedTensor& x) { return holds(x.value.get()); });
    if (!cotangent && !saved) continue;
    fail<GraphError>("[{}] its rule writes into {}, which others read as well: write into a clone",
                     rule->node->name, cotangent ? "its cotangent" : "a tensor that was saved for it");
  }
}

}  // namespace fovea::detail
