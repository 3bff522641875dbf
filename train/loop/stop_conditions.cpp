#include "fovea/train/loop/stop_conditions.h"

#include <chrono>

#include "autograd/base/fail.h"

namespace fovea {
namespace {

std::optional<StopReason> stop_if(bool condition, StopReason reason) {
  return condition ? std::optional(reason) : std::nullopt;
}

}  // namespace

bool is_final(StopReason reason) {
  return reason != StopReason::time_budget && reason != StopReason::interrupted;
}

StopCondition early_stopping(std::int64_t patience) {
  if (patience < 1) fail<ValueError>("[early_stopping] patience is {}: it must be 1 or more", patience);
  return [patience](const TrainerStatus& status) {
    return stop_if(status.evaluations_since_best >= patience, StopReason::no_improvement);
  };
}

StopCondition token_budget(std::int64_t tokens) {
  if (tokens < 1) fail<ValueError>("[token_budget] tokens is {}: it must be 1 or more", tokens);
  return [tokens](const TrainerStatus& status) {
    return stop_if(status.tokens >= tokens, StopReason::token_budget);
  };
}

StopCondition time_budget(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (!(seconds > 0)) fail<ValueError>("[time_budget] seconds is {}: it must be above 0", seconds);
  return [seconds, start = std::optional<Clock::time_point>()](const TrainerStatus&) mutable {
    if (!start) {  // the first step is still to come
      start = Clock::now();
      return std::optional<StopReason>();
    }
    const std::chrono::duration<double> passed = Clock::now() - *start;
    return stop_if(passed.count() >= seconds, StopReason::time_budget);
  };
}

StopCondition interrupted(const Interrupt& interrupt) {
  return
      [&interrupt](const TrainerStatus&) { return stop_if(interrupt.requested(), StopReason::interrupted); };
}

}  // namespace fovea
