#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/train/loop/interrupt.h"
#include "fovea/train/loop/trainer_status.h"

namespace fovea {

/// Why training stopped.
enum class StopReason : std::uint8_t {
  all_steps,       ///< TrainerOptions::steps have been taken
  end_of_data,     ///< the source has no more batches
  no_improvement,  ///< early stopping
  token_budget,
  time_budget,
  interrupted
};

/// Whether training is complete: true for all reasons but `time_budget` and `interrupted`, which depend on
/// the clock or a person. After these two, training that is resumed goes on as if it had not stopped.
FOVEA_API bool is_final(StopReason reason);

/// Decides before each step whether training stops: Trainer::stop_when takes any number of them.
using StopCondition = std::function<std::optional<StopReason>(const TrainerStatus& status)>;

/// Stops after `patience` evaluations in a row that were not lower than the best one before them. It needs
/// TrainerOptions::evaluate_every. Throws: ValueError if patience is below 1.
FOVEA_API StopCondition early_stopping(std::int64_t patience);

/// Stops once that many targets have been learned from. Throws: ValueError if tokens is below 1.
FOVEA_API StopCondition token_budget(std::int64_t tokens);

/// Stops once that many seconds have passed in this process, counted from its first step.
/// Throws: ValueError unless seconds is above 0.
FOVEA_API StopCondition time_budget(double seconds);

/// Stops when a signal was received. `interrupt` must outlive the condition.
FOVEA_API StopCondition interrupted(const Interrupt& interrupt);

}  // namespace fovea
