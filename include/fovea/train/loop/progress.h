#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>

#include "fovea/autograd/base/export.h"
#include "fovea/train/loop/trainer.h"

namespace fovea {

/// Shows how training goes: step, loss, learning rate, norm of the gradients, tokens per second, time left,
/// and how many steps were skipped. On a terminal one line is rewritten in place; elsewhere ten plain lines
/// come in all.
///
///   Progress progress(stdout);
///   trainer.on_step(std::ref(progress));
///   trainer.on_evaluation(std::ref(progress));  // a line for each, which stays
class FOVEA_API Progress {
 public:
  explicit Progress(std::FILE* out);
  /// Leaves the cursor at the start of a line, also when an error passes.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts a step. The loss that is shown is the mean over all tokens since it was last shown; rate and norm
  /// are those of the step.
  void operator()(const StepReport& report);
  void operator()(const EvaluationReport& report);

  /// Since the start.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool due(const StepReport& report) const;
  void show(const StepReport& report);

  std::FILE* out_;
  bool rewrites_;
  bool line_open_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  std::int64_t done_ = 0;  // in this process, as time is
  std::int64_t tokens_ = 0;
  std::int64_t skipped_ = 0;
  double recent_nats_ = 0;
  std::int64_t recent_tokens_ = 0;
};

}  // namespace fovea
