#include <algorithm>
#include <cmath>

#include "fovea/autograd/ops.h"
#include "train/tasks/number_words.h"
#include "train/tasks/sequences.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t half = 32, kinds = 32, scored = 1024, scored_at_once = 128;

// Olsson et al. 2022, "In-context learning and induction heads": random tokens can't be foreseen, and their
// repetition can, by who looks back. A token may stand in the half several times, so that what came before it
// does not tell which one is meant, and the distance, always 32, does.
class Induction final : public Task {
 public:
  std::string_view summary() const override { return "Predict 32 random tokens, and the same 32 again"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int64_t context() const override { return 2 * half - 1; }

  Recipe recipe() const override {
    return {.model = without_biases({.d_model = 64, .heads = 2, .layers = 2}),
            .batch = 32,
            .steps = 400,
            .learning_rate = 3e-3};
  }

  Batch sample_batch(std::int64_t count, Rng& rng) const override {
    return sequences_.training_batch(count, rng);
  }
  Batch unseen_batch(std::int64_t count, Rng& rng) const override {
    return sequences_.unseen_batch(count, rng);
  }

  std::vector<Metric> score(const LanguageModel& model, Rng& rng) const override {
    double first = 0, second = 0;  // nats
    for (std::int64_t done = 0; done < scored; done += scored_at_once) {
      const Batch batch = unseen_batch(scored_at_once, rng);
      const Tensor logits = detail::ask(model, batch.inputs, kinds);
      const Tensor nats = cross_entropy(logits, batch.targets, {.reduction = Reduction::none}).loss;
      // Row t predicts token t + 1, so the second half begins with row `half - 1`.
      first += sum(slice(nats, 1, 0, half - 1)).item();
      second += sum(slice(nats, 1, half - 1, 2 * half - 1)).item();
    }
    using enum Metric::Better;
    using enum Metric::Unit;
    // Below ln V by luck alone: with what the score's 31,744 tokens leave of a trained model's noise.
    return {{.name = "loss of the second half",
             .value = second / (scored * half),
             .right = 0,
             .allowed = 0.05,
             .better = lower,
             .unit = nats},
            {.name = "loss of the first half",
             .value = first / (scored * (half - 1)),
             .right = std::log(static_cast<double>(kinds)),
             .allowed = 0.01,
             .better = higher,
             .unit = nats}};
  }

 private:
  static detail::Ids draw(Rng& rng) {
    detail::Ids ids = detail::random_numbers(half, kinds, rng);
    ids.resize(2 * half);
    std::copy_n(ids.begin(), half, ids.begin() + half);
    return ids;
  }

  Vocabulary vocabulary_ = detail::number_words(kinds);
  detail::Sequences sequences_{.draw = draw};
};

}  // namespace

std::unique_ptr<Task> induction() { return std::make_unique<Induction>(); }

}  // namespace fovea::tasks
