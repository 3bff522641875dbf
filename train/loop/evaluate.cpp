#include "fovea/train/loop/evaluate.h"

#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"

namespace fovea {

Evaluation evaluate(const LanguageModel& model, const EvaluationSource& batches,
                    std::optional<std::int64_t> ignored) {
  const EvalMode inference;
  const NoGrad no_grad;
  Evaluation evaluation;
  for (std::int64_t index = 0; const std::optional<Batch> batch = batches(index); ++index) {
    const CrossEntropy result = cross_entropy(model(batch->inputs), batch->targets,
                                              {.ignore_index = ignored, .reduction = Reduction::sum});
    evaluation.loss += result.loss.item();
    evaluation.tokens += result.count;
  }
  if (evaluation.tokens > 0) evaluation.loss /= static_cast<double>(evaluation.tokens);
  return evaluation;
}

}  // namespace fovea
