#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>

#include "fovea/autograd/base/export.h"
#include "fovea/train/loop/trainer.h"

namespace fovea {

/// Prints the progress of training: step, loss, learning rate, gradient norm, tokens per second, the time
/// left and the number of skipped steps. On a terminal it rewrites one line in place; elsewhere it prints ten
/// lines in all. It never throws: what can't be printed is lost, and training goes on.
///
///   Progress progress(stdout);
///   trainer.on_step(std::ref(progress));
///   trainer.on_evaluation(std::ref(progress));  // prints a line of its own for each evaluation
class FOVEA_API Progress {
 public:
  explicit Progress(std::FILE* out);
  /// Ends an open line, also while an exception passes.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts a step, and prints if it is time to. The loss that is printed is the mean over all tokens since
  /// it was last printed; learning rate and gradient norm are those of the step.
  void operator()(const StepReport& report);
  void operator()(const EvaluationReport& report);

  /// Ends the line that is rewritten in place, so that other output can follow.
  void end_line();

  /// Seconds since this object was made.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due(const StepReport& report) const;
  void show(const StepReport& report);

  std::FILE* out_;
  bool rewrites_line_;
  bool line_open_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  std::int64_t steps_here_ = 0;  // a resumed run has taken other steps before
  std::int64_t tokens_ = 0;
  std::int64_t skipped_ = 0;
  double recent_nats_ = 0;
  std::int64_t recent_tokens_ = 0;
};

}  // namespace fovea
