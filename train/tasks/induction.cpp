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

constexpr std::int64_t length = 64, shortest = 8, longest = 24, kinds = 32;
constexpr std::int64_t scored = 1024, scored_at_once = 128;

// Olsson et al. 2022, "In-context learning and induction heads". A block of random tokens, no two alike, is
// repeated to the end of the sequence. Its length differs from sequence to sequence, so that no fixed
// distance tells the next token: a model must find the last occurrence of the present one, and copy what
// followed it. That takes two layers, since in the first no key knows which token precedes it.
class Induction final : public Task {
 public:
  std::string_view summary() const override {
    return "Predict the repeats of a random block, whose length is not told";
  }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int64_t context() const override { return length - 1; }

  Recipe recipe() const override {
    return {
        .model = without_biases({.d_model = 64, .heads = 2, .layers = 2, .positions = Positions::relative}),
        .batch = 32,
        .steps = 1000,
        .learning_rate = 3e-3};
  }

  Batch sample_batch(std::int64_t count, Rng& rng) const override {
    return sequences_.training_batch(count, rng);
  }
  Batch unseen_batch(std::int64_t count, Rng& rng) const override {
    return sequences_.unseen_batch(count, rng);
  }

  std::vector<Metric> score(const LanguageModel& model, Rng& rng) const override {
    double new_tokens = 0, repeats = 0;  // nats
    std::int64_t repeated = 0;
    for (std::int64_t done = 0; done < scored; done += scored_at_once) {
      const Batch batch = unseen_batch(scored_at_once, rng);
      const Tensor logits = detail::ask(model, batch.inputs, kinds);
      const Tensor nats = cross_entropy(logits, batch.targets, {.reduction = Reduction::none}).loss;
      for (std::int64_t i = 0; i < scored_at_once; ++i) {
        const Tensor row = select(nats, 0, i);  // position t predicts token t + 1
        const std::int64_t period = period_of(batch.inputs, i);
        new_tokens += sum(slice(row, 0, 0, shortest - 1)).item();
        repeats += sum(slice(row, 0, period, length - 1)).item();
        repeated += length - 1 - period;
      }
    }
    using enum Metric::Better;
    using enum Metric::Unit;
    // Below this loss of new tokens a model sees the future. The allowance leaves room for the noise in the
    // 7,168 tokens that are scored.
    return {{.name = "loss of the repeats",
             .value = repeats / static_cast<double>(repeated),
             .right = 0,
             .allowed = 0.05,
             .better = lower,
             .unit = nats},
            {.name = "loss of new tokens",
             .value = new_tokens / (scored * (shortest - 1)),
             .right = entropy_of_new_tokens(),
             .allowed = 0.01,
             .better = higher,
             .unit = nats}};
  }

  // An induction head attends to the token that followed the last occurrence of the present one.
  std::vector<Exhibit> exhibits(const TrainedModel& model, Rng& rng) const override {
    const NoGrad no_grad;
    const Indices whole = unseen_batch(1, rng).inputs;
    const std::int64_t period = period_of(whole, 0), row = period + 7, copied = row + 1 - period;
    const Indices ids({1, row + 1}, whole.values().first(static_cast<std::size_t>(row + 1)));
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
    const std::int64_t period = shortest + rng.uniform_int(longest - shortest + 1);
    const detail::Ids block = detail::different_numbers(period, kinds, rng);
    detail::Ids ids(length);
    for (std::int64_t t = 0; t < length; ++t) {
      ids[static_cast<std::size_t>(t)] = block[static_cast<std::size_t>(t % period)];
    }
    return ids;
  }

  // The length of the block that sequence `row` repeats: where its first token comes again.
  static std::int64_t period_of(const Indices& ids, std::int64_t row) {
    const auto sequence = ids.values().subspan(static_cast<std::size_t>(row * ids.size(1)));
    return std::find(sequence.begin() + 1, sequence.end(), sequence.front()) - sequence.begin();
  }

  // Of the tokens that can't be repeats yet, nats per token: each is one of those that have not been seen.
  static double entropy_of_new_tokens() {
    double nats = 0;
    for (std::int64_t seen = 1; seen < shortest; ++seen) nats += std::log(static_cast<double>(kinds - seen));
    return nats / (shortest - 1);
  }

  Vocabulary vocabulary_ = detail::number_words(kinds);
  detail::Sequences sequences_{.draw = draw};
};

}  // namespace

std::unique_ptr<Task> induction() { return std::make_unique<Induction>(); }

}  // namespace fovea::tasks
