#include "fovea/train/tasks/answer_task.h"

#include <algorithm>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/generate/generate.h"
#include "train/tasks/base/sequences.h"

namespace fovea {
namespace {

constexpr std::int64_t scored = 1024;
constexpr std::int64_t scored_at_once = 128;

std::vector<bool> judged_ids(const std::vector<PromptAnswer>& instance) {
  std::vector<bool> judged;
  for (const auto& [prompt, answer] : instance) {
    judged.insert(judged.end(), prompt.size(), false);
    judged.insert(judged.end(), answer.size(), true);
  }
  return judged;
}

std::vector<std::int64_t> as_sequence(const std::vector<PromptAnswer>& instance) {
  std::vector<std::int64_t> ids;
  for (const auto& [prompt, answer] : instance) {
    ids.insert(ids.end(), prompt.begin(), prompt.end());
    ids.insert(ids.end(), answer.begin(), answer.end());
  }
  return ids;
}

// The number of rows in a batch whose judged targets are all predicted.
std::int64_t count_right(const Indices& predicted, const Indices& targets) {
  const auto T = static_cast<std::size_t>(targets.size(1));
  const auto is_right = [](std::int64_t target, std::int64_t guess) {
    return target == ignored_target || target == guess;
  };
  std::int64_t right = 0;
  for (std::size_t begin = 0; begin < targets.values().size(); begin += T) {
    right += std::ranges::equal(targets.values().subspan(begin, T), predicted.values().subspan(begin, T),
                                is_right);
  }
  return right;
}

detail::Sequences sequences_of(const AnswerTask::Definition& definition, const std::vector<bool>& judged) {
  const auto draw = [&definition, &judged](Rng& rng) {
    const std::vector<PromptAnswer> instance = definition.instance(rng);
    if (judged_ids(instance) != judged) {
      fail<ValueError>(
          "[AnswerTask] an instance has prompts or answers of other lengths than the first one: draw all "
          "instances with the same lengths");
    }
    return as_sequence(instance);
  };
  return {.draw = draw, .judged = judged, .held_out = definition.held_out};
}

}  // namespace

AnswerTask::AnswerTask(Definition definition) : definition_(std::move(definition)) {
  Rng rng(0);
  const std::vector<PromptAnswer> any = definition_.instance(rng);
  const bool complete = std::ranges::all_of(
      any, [](const PromptAnswer& pair) { return !pair.prompt.empty() && !pair.answer.empty(); });
  if (any.empty() || !complete) {
    fail<ValueError>(
        "[AnswerTask] an instance has an empty prompt or answer, or none at all: it needs at least one of "
        "each");
  }
  judged_ = judged_ids(any);
  unseen_batch(1, rng);  // checks the share that is held out now rather than in training
}

Batch AnswerTask::sample_batch(std::int64_t count, Rng& rng) const {
  return sequences_of(definition_, judged_).training_batch(count, rng);
}

Batch AnswerTask::unseen_batch(std::int64_t count, Rng& rng) const {
  return sequences_of(definition_, judged_).unseen_batch(count, rng);
}

std::vector<Metric> AnswerTask::score(const LanguageModel& model, Rng& rng) const {
  std::int64_t right = 0;
  for (std::int64_t done = 0; done < scored; done += scored_at_once) {
    const Batch batch = unseen_batch(scored_at_once, rng);
    const Tensor logits = detail::ask(model, batch.inputs, vocabulary().size());
    right += count_right(argmax(logits), batch.targets);
  }
  return {{.name = definition_.metric,
           .value = static_cast<double>(right) / scored,
           .right = 1,
           .allowed = definition_.allowed}};
}

std::vector<Exhibit> AnswerTask::exhibits(const TrainedModel& model, Rng& rng) const {
  const Batch batch = unseen_batch(1, rng);
  // The first answer of the instance follows the first prompt, and ends before the next one.
  const auto answer_begin = std::ranges::find(judged_, true);
  const auto answer_end = std::find(answer_begin, judged_.end(), false);
  const auto begin = static_cast<std::size_t>(answer_begin - judged_.begin());
  const auto length = static_cast<std::size_t>(answer_end - answer_begin);
  const std::span<const std::int64_t> prompt = batch.inputs.values().first(begin);
  const std::span<const std::int64_t> right = batch.targets.values().subspan(begin - 1, length);

  const GenerateOptions greedy{.tokens = static_cast<std::int64_t>(length), .sampling = {.temperature = 0}};
  const std::vector<std::int64_t> answer = generate(model.logits, context(), prompt, greedy, rng);
  const std::string verdict = std::ranges::equal(answer, right)
                                  ? "which is right"
                                  : fmt::format("but {} is right", vocabulary().decode(right));
  return {{.text = fmt::format("prompt  {}\nanswer  {}, {}", vocabulary().decode(prompt),
                               vocabulary().decode(answer), verdict)}};
}

}  // namespace fovea
