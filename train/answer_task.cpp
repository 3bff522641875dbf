#include "fovea/train/answer_task.h"

#include <algorithm>
#include <utility>

#include "autograd/fail.h"
#include "fovea/autograd/ops.h"
#include "train/sequences.h"

namespace fovea {
namespace {

constexpr std::int64_t scored = 1024;
constexpr std::int64_t scored_at_once = 128;

detail::Sequences sequences_of(const AnswerTask::Definition& definition, std::int64_t given) {
  const auto draw = [&definition](Rng& rng) {
    Instance instance = definition.instance(rng);
    instance.prompt.insert(instance.prompt.end(), instance.answer.begin(), instance.answer.end());
    return std::move(instance.prompt);
  };
  return {.draw = draw, .given = given, .held_out = definition.held_out};
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

}  // namespace

AnswerTask::AnswerTask(Definition definition) : definition_(std::move(definition)) {
  Rng rng(0);
  const Instance any = definition_.instance(rng);
  if (any.prompt.empty() || any.answer.empty()) {
    fail<ValueError>("[AnswerTask] an instance has {} ids of prompt and {} of answer: at least 1 each",
                     any.prompt.size(), any.answer.size());
  }
  given_ = std::ssize(any.prompt);
  context_ = given_ + std::ssize(any.answer) - 1;
  unseen_batch(1, rng);  // the share is checked now, not in training
}

Batch AnswerTask::sample_batch(std::int64_t count, Rng& rng) const {
  return sequences_of(definition_, given_).training_batch(count, rng);
}

Batch AnswerTask::unseen_batch(std::int64_t count, Rng& rng) const {
  return sequences_of(definition_, given_).unseen_batch(count, rng);
}

std::vector<Measure> AnswerTask::score(const LanguageModel& model, Rng& rng) const {
  std::int64_t right = 0;
  for (std::int64_t done = 0; done < scored; done += scored_at_once) {
    const Batch batch = unseen_batch(scored_at_once, rng);
    const Tensor logits = detail::ask(model, batch.inputs, vocabulary().size());
    right += count_right(argmax(logits), batch.targets);
  }
  return {{.name = definition_.measure,
           .value = static_cast<double>(right) / scored,
           .right = 1,
           .allowed = definition_.allowed}};
}

}  // namespace fovea
