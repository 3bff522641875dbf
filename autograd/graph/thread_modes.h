#pragma once

#include <cstdint>

#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"

namespace fovea::detail {

/// Is asked before an op is recorded on this thread. Recomputation sets one while a function runs for the
/// first time, so that the ops in it are left for its second run.
class RecordHook {
 public:
  /// Whether to record the op. Throws what is wrong with recording it, or leaving it out.
  virtual bool should_record(const char* op, TensorRefs inputs) = 0;

 protected:
  ~RecordHook() = default;
};

struct RunningRule;

/// What the scopes of a thread have set; each field is changed through a ScopedValue.
struct ThreadModes {
  bool recording = true;
  bool anomaly = false;
  TrainMode* training = nullptr;  // the innermost scope; null in evaluation
  RecordHook* record_hook = nullptr;
  const RunningRule* running_rule = nullptr;  // the innermost
};
extern constinit thread_local ThreadModes modes;

/// While one of these lives, ops on this thread are recorded, whatever scopes are open around it. It is for
/// functions that make a graph of their own, such as `hessian`.
class WithGraph {
 public:
  WithGraph() : recording_(modes.recording, true), hook_(modes.record_hook, nullptr) {}

 private:
  ScopedValue<bool> recording_;
  ScopedValue<RecordHook*> hook_;
};

/// The next draw of the open TrainMode scope. Call it only if `training()`.
std::uint64_t draw_key();

}  // namespace fovea::detail
