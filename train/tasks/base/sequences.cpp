#include "train/tasks/base/sequences.h"

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/data/hold_out.h"

namespace fovea::detail {

Batch Sequences::batch(std::int64_t count, bool unseen, Rng& rng) const {
  if (count < 1) fail<ValueError>("[Task] a batch of {} instances was asked for: ask for at least 1", count);
  std::vector<Ids> sequences;
  while (std::ssize(sequences) < count) {
    Ids ids = draw(rng);
    if (is_held_out(ids, held_out) == unseen) sequences.push_back(std::move(ids));
  }
  Batch all = next_token_batch(sequences, ignored_target);
  if (judged.empty()) return all;
  const std::int64_t rows = all.targets.size(1);
  return {all.inputs, Indices(all.targets.shape(), [&](std::int64_t* targets) {
            for (std::int64_t i = 0; i < all.targets.numel(); ++i) {
              // Position t predicts id t + 1.
              targets[i] = judged[static_cast<std::size_t>(i % rows + 1)] ? all.targets[i] : ignored_target;
            }
          })};
}

Tensor ask(const LanguageModel& model, const Indices& ids, std::int64_t vocabulary) {
  const NoGrad no_grad;
  const Tensor logits = model(ids);
  const Shape expected{ids.size(0), ids.size(1), vocabulary};
  if (logits.shape() != expected) {
    fail<ShapeError>("[Task::score] the model's logits are {}: expected {} for ids {} and {} words",
                     to_string(logits.shape()), to_string(expected), to_string(ids.shape()), vocabulary);
  }
  if (!all(is_finite(logsumexp(logits, {-1})))) {
    fail<NonFiniteError>(
        "[Task::score] the model gives a logit that is NaN or infinite: has training diverged?");
  }
  return to(logits, f64);
}

}  // namespace fovea::detail
