#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/train/data/batch.h"

namespace fovea {

/// The batches of an evaluation, the same each time: number `index`, counted from 0, or nothing after the
/// last.
using EvaluationSource = std::function<std::optional<Batch>(std::int64_t index)>;

struct Evaluation {
  double loss = 0;          ///< in nats per target; 0 if there is none
  std::int64_t tokens = 0;  ///< targets that were counted
};

/// The cross-entropy of a model over all batches: the sum over their targets, divided once by their number.
/// It runs outside any graph and any TrainMode scope. Targets that are `ignored` count for nothing. Throws:
/// as cross_entropy.
FOVEA_API Evaluation evaluate(const LanguageModel& model, const EvaluationSource& batches,
                              std::optional<std::int64_t> ignored = ignored_target);

}  // namespace fovea
