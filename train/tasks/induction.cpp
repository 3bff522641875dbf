#include <algorithm>
#include <cmath>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "train/tasks/base/heads.h"
#include "train/tasks/base/number_words.h"
#include "train/tasks/base/sequences.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t half = 32, kinds = 32, scored = 1024, scored_at_once = 128;

// Olsson et al. 2022, "In-context learning and induction heads". The first half is random, so nobody can
// predict it; a model that looks back can predict the second half. A token may occur in the half more than
// once, so the token before does not tell which occurrence to continue from; the distance, always 32, does.
class Induction final : public Task {
 public:
  std::string_view summary() const override { return "Predict 32 random tokens, then the same 32 again"; }
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
      // Row t predicts token t + 1, so rows from `half - 1` on predict the second half.
      first += sum(slice(nats, 1, 0, half - 1)).item();
      second += sum(slice(nats, 1, half - 1, 2 * half - 1)).item();
    }
    using enum Metric::Better;
    using enum Metric::Unit;
    // The loss of the first half can be below ln V by chance only. The allowance leaves room for the noise in
    // the 31,744 tokens that are scored.
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

  // An induction head attends to the token that followed the last occurrence of the present one.
  std::vector<Exhibit> exhibits(const TrainedModel& model, Rng& rng) const override {
    const NoGrad no_grad;
    constexpr std::int64_t row = half + 7, copied = row + 1 - half, shown = row + 1;
    const Indices whole = unseen_batch(1, rng).inputs;
    const Indices ids({1, shown}, whole.values().first(static_cast<std::size_t>(shown)));
    const std::vector<Tensor> maps = model.attention(ids);
    const detail::Head head = detail::strongest_head(maps, row, copied);

    Exhibit exhibit{.weights = select(detail::map_of(maps, head), 0, row)};
    exhibit.text = fmt::format(
        "The next token repeats \"{}\", the one at position {}. Where {} looks when the model predicts it:",
        vocabulary_.word(ids[copied]), copied, detail::name_of(maps, head));
    for (const std::int64_t id : ids.values()) exhibit.words.push_back(vocabulary_.word(id));
    return {exhibit};
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
