#include "fovea/train/tasks/answer_task.h"

#include <algorithm>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"
#include "train/tasks/sequences.h"

namespace fovea {
namespace {

constexpr std::int64_t scored = 1024;
constexpr std::int64_t scored_at_once = 128;

std::vector<bool> judged_ids(const std::vector<PromptAnswer>& instance) {
  std::vector<bool> judged;
  for (const PromptAnswer& round : instance) {
    judged.insert(judged.end(), round.prompt.size(), false);
    judged.insert(judged.end(), round.answer.size(), true);
  }
  return judged;
}

// An instance as one sequence.
std::vector<std::int64_t> joined(const std::vector<PromptAnswer>& instance) {
  std::vector<std::int64_t> ids;
  for (const PromptAnswer& round : instance) {
    ids.insert(ids.end(), round.prompt.begin(), round.prompt.end());
    ids.insert(ids.end(), round.answer.begin(), round.answer.end());
  }
  return ids;
}

// Of how many rows of the batch all judged targets are the likeliest.
std::int64_t count_right(const Indices& likeliest, const Indices& targets) {
  const std::int64_t T = targets.size(1);
  std::int64_t right = 0;
  for (std::int64_t b = 0; b < targets.size(0); ++b) {
    const auto target =
        targets.values().subspan(static_cast<std::size_t>(b * T), static_cast<std::size_t>(T));
    const auto guess =
        likeliest.values().subspan(static_cast<std::size_t>(b * T), static_cast<std::size_t>(T));
    right += std::ranges::equal(target, guess,
                                [](std::int64_t a, std::int64_t g) { return a == ignored_target || a == g; });
  }
  return right;
}

detail::Sequences sequences_of(const AnswerTask::Definition& definition, const std::vector<bool>& judged) {
  const auto draw = [&definition, &judged](Rng& rng) {
    const std::vector<PromptAnswer> instance = definition.instance(rng);
    if (judged_ids(instance) != judged) {
      fail<ValueError>("[AnswerTask] an instance has prompts or answers of other lengths than those before");
    }
    return joined(instance);
  };
  return {.draw = draw, .judged = judged, .held_out = definition.held_out};
}

}  // namespace

AnswerTask::AnswerTask(Definition definition) : definition_(std::move(definition)) {
  Rng rng(0);
  const std::vector<PromptAnswer> any = definition_.instance(rng);
  const bool complete = std::ranges::all_of(
      any, [](const PromptAnswer& round) { return !round.prompt.empty() && !round.answer.empty(); });
  if (any.empty() || !complete) {
    fail<ValueError>("[AnswerTask] an instance needs a round at least, and each a prompt and an answer");
  }
  judged_ = judged_ids(any);
  unseen_batch(1, rng);  // the share is checked now, not in training
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

}  // namespace fovea
