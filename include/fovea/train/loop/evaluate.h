#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/train/data/batch.h"

namespace fovea {

/// Held-out data: returns batch number `index`, counted from 0, or nothing after the last. It must return the
/// same batches each time.
using EvaluationSource = std::function<std::optional<Batch>(std::int64_t index)>;

struct Evaluation {
  double loss = 0;          ///< in nats per target; 0 if there are no targets
  std::int64_t tokens = 0;  ///< the number of targets
};

/// The cross-entropy of a model over all batches: the sum over their targets, divided once by their number.
/// Targets equal to `ignored` are left out. It records no graph and suspends any TrainMode scope, so that
/// dropout is off. Throws: as cross_entropy.
FOVEA_API Evaluation evaluate(const LanguageModel& model, const EvaluationSource& batches,
                              std::optional<std::int64_t> ignored = ignored_target);

}  // namespace fovea
