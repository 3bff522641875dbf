#include "fovea/train/tasks/agreement/agreement.h"

#include "autograd/base/fail.h"
#include "fovea/train/data/hold_out.h"
#include "fovea/train/tasks/task.h"

namespace fovea::tasks {
namespace {

class AgreementTask final : public Task {
 public:
  std::string_view summary() const override { return "Complete \"the key to the cabinets\": is or are?"; }
  const Vocabulary& vocabulary() const override { return grammar_.vocabulary(); }
  std::int64_t context() const override { return longest; }
  std::optional<std::int64_t> start() const override { return Agreement::start; }
  std::optional<std::int64_t> stop() const override { return vocabulary().find("."); }

  Recipe recipe() const override {
    return {.kind = ModelKind::one_head,
            .model = {.d_model = 32},
            .batch = 64,
            .steps = 1000,
            .weight_decay = 0.01,
            .learning_rate = 0.014,
            .final_learning_rate = 0,
            .warmup = 0,
            .clip = 0.5};  // an early large step can lock the head onto a wrong word for good
  }

  Batch sample_batch(std::int64_t count, Rng& rng) const override { return batch(draw(count, false, rng)); }
  Batch unseen_batch(std::int64_t count, Rng& rng) const override { return batch(draw(count, true, rng)); }

  std::vector<Metric> score(const LanguageModel& model, Rng& rng) const override {
    const auto ask = [&](const Indices& ids) { return Agreement::Prediction{model(ids), {}}; };
    const Agreement::Score score = grammar_.score(ask, draw(scored, true, rng));
    return {{.name = "loss above the floor",
             .value = score.excess,
             .allowed = 0.02,
             .better = Metric::Better::lower,
             .unit = Metric::Unit::nats},
            {.name = "verb right", .value = score.all.verb.value(), .right = 1, .allowed = 0.01},
            {.name = "predicate right", .value = score.all.predicate.value(), .right = 1, .allowed = 0.01}};
  }

 private:
  static constexpr std::int64_t longest = 15;  // with an adjective and 3 phrases, up to the predicate
  static constexpr std::int64_t scored = 4096;
  static constexpr double held_out = 0.125;

  // Without a phrase there are 300 sentences only. Were some of them held out, training would teach that what
  // they say is never said, and the floor would be out of reach.
  static bool is_unseen(const Agreement::Sentence& sentence) {
    const bool has_phrase = sentence.verb > sentence.subject + 1;
    return has_phrase && is_held_out(sentence.ids, held_out);
  }

  std::vector<Agreement::Sentence> draw(std::int64_t count, bool unseen, Rng& rng) const {
    if (count < 1) fail<ValueError>("[Task] a batch of {} sentences asked for: at least 1", count);
    std::vector<Agreement::Sentence> sentences;
    while (std::ssize(sentences) < count) {
      Agreement::Sentence sentence = grammar_.sample(rng);
      if (is_unseen(sentence) == unseen) sentences.push_back(std::move(sentence));
    }
    return sentences;
  }

  static Batch batch(const std::vector<Agreement::Sentence>& sentences) {
    std::vector<std::vector<std::int64_t>> sequences;
    sequences.reserve(sentences.size());
    for (const Agreement::Sentence& sentence : sentences) sequences.push_back(sentence.ids);
    return next_token_batch(sequences, Agreement::padding, ignored_target);
  }

  Agreement grammar_;
};

}  // namespace

std::unique_ptr<Task> agreement() { return std::make_unique<AgreementTask>(); }

}  // namespace fovea::tasks
