#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace fovea::cli {

/// Shows how training goes: step, loss, tokens per second, time left. On a terminal one line is rewritten in
/// place; elsewhere ten plain lines come in all.
class Progress {
 public:
  Progress(std::int64_t steps, std::FILE* out);
  /// Leaves the cursor at the start of a line, also when an error passes.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts a step with its loss per token. The loss that is shown is the mean over all tokens since it was
  /// last shown.
  void step(double loss, std::int64_t tokens);

  /// Since the start.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool due() const;
  void show();

  std::int64_t steps_;
  std::FILE* out_;
  bool rewrites_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  std::int64_t done_ = 0;
  std::int64_t tokens_ = 0;
  double recent_nats_ = 0;
  std::int64_t recent_tokens_ = 0;
};

}  // namespace fovea::cli
