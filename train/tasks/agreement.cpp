#include "fovea/train/tasks/agreement/agreement.h"

#include <algorithm>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/data/hold_out.h"
#include "fovea/train/tasks/task.h"
#include "train/tasks/base/heads.h"

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
            .clip = 0.5};  // one large early step can fix the head on a wrong word for good
  }

  Batch sample_batch(std::int64_t count, Rng& rng) const override { return batch(draw(count, false, rng)); }
  Batch unseen_batch(std::int64_t count, Rng& rng) const override { return batch(draw(count, true, rng)); }

  std::vector<Metric> score(const LanguageModel& model, Rng& rng) const override {
    const Agreement::Score score = grammar_.score(model, draw(scored, true, rng));
    return {{.name = "loss above the floor",
             .value = score.excess,
             .allowed = 0.02,
             .better = Metric::Better::lower,
             .unit = Metric::Unit::nats,
             .note = fmt::format("the floor is {:.4f}, and a bigram model reaches {:.4f}",
                                 grammar_.entropy_floor(), grammar_.bigram_loss())},
            accuracy("verb right", score.all.verb, score.opposed.verb),
            accuracy("predicate right", score.all.predicate, score.opposed.predicate)};
  }

  // Where the head that looks most at the subject looks just before the model says the verb.
  std::vector<Exhibit> exhibits(const TrainedModel& model, Rng& rng) const override {
    const NoGrad no_grad;
    const Agreement::Sentence sentence = grammar_.parse(Agreement::example);
    const std::span<const std::int64_t> before_verb =
        std::span(sentence.ids).first(static_cast<std::size_t>(sentence.verb));
    const Indices ids({1, sentence.verb}, before_verb);
    const std::int64_t row = sentence.verb - 1;  // predicts the verb
    const std::int64_t verb = sentence.ids[static_cast<std::size_t>(sentence.verb)];
    const double probability = softmax(model.logits(ids)).at({0, row, verb});
    const std::vector<Tensor> maps = model.attention(ids);
    const detail::Head head = detail::strongest_head(maps, row, sentence.subject);

    Exhibit exhibit{.weights = select(detail::map_of(maps, head), 0, row)};
    exhibit.text = fmt::format(
        "\"{}\": where {} looks when the model predicts \"{}\" ({:.0f}%).\n"
        "In {} unseen sentences, {:.1f}% of this attention is on the subject.",
        Agreement::example, detail::name_of(maps, head), vocabulary().word(verb), 100 * probability,
        detail::with_commas(scored), 100 * subject_attention(model, head, draw(scored, true, rng)));
    for (const std::int64_t id : before_verb) exhibit.words.push_back(vocabulary().word(id));
    return {exhibit};
  }

 private:
  static constexpr std::int64_t longest = 15;  // with an adjective and 3 phrases, up to the predicate
  static constexpr std::int64_t scored = 4096;
  static constexpr std::size_t scored_at_once = 128;
  static constexpr double held_out = 0.125;

  static Metric accuracy(const char* name, const Agreement::Share& all, const Agreement::Share& opposed) {
    Metric metric{.name = name, .value = all.value(), .right = 1, .allowed = 0.01};
    if (opposed.total > 0) {
      metric.note =
          fmt::format("{:.2f}% where a noun in between has the other number", 100 * opposed.value());
    }
    return metric;
  }

  // The mean weight on the subject's noun in the row that predicts the verb.
  static double subject_attention(const TrainedModel& model, const detail::Head& head,
                                  std::span<const Agreement::Sentence> sentences) {
    double total = 0;
    for (std::size_t begin = 0; begin < sentences.size(); begin += scored_at_once) {
      const auto some = sentences.subspan(begin, std::min(scored_at_once, sentences.size() - begin));
      const Tensor weights = model.attention(batch(some).inputs)[static_cast<std::size_t>(head.layer)];
      for (std::size_t b = 0; b < some.size(); ++b) {
        total += weights.at({static_cast<std::int64_t>(b), head.head, some[b].verb - 1, some[b].subject});
      }
    }
    return total / static_cast<double>(sentences.size());
  }

  // There are only 300 sentences without a phrase. All are for training: if some were held out, training
  // would teach that they are never said, and the floor would be out of reach.
  static bool is_unseen(const Agreement::Sentence& sentence) {
    const bool has_phrase = sentence.verb > sentence.subject + 1;
    return has_phrase && is_held_out(sentence.ids, held_out);
  }

  std::vector<Agreement::Sentence> draw(std::int64_t count, bool unseen, Rng& rng) const {
    if (count < 1)
      fail<ValueError>("[Task] a batch of {} sentences was asked for: ask for at least 1", count);
    std::vector<Agreement::Sentence> sentences;
    while (std::ssize(sentences) < count) {
      Agreement::Sentence sentence = grammar_.sample(rng);
      if (is_unseen(sentence) == unseen) sentences.push_back(std::move(sentence));
    }
    return sentences;
  }

  static Batch batch(std::span<const Agreement::Sentence> sentences) {
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
