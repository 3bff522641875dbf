#include "fovea/train/tasks/answer_task.h"
#include "train/tasks/base/number_words.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t plus = 10, equals = 11;

std::vector<PromptAnswer> draw(Rng& rng) {
  const std::int64_t a = 1000 + rng.uniform_int(9000), b = 1000 + rng.uniform_int(9000);
  PromptAnswer pair;
  for (std::int64_t tens = 1000; tens > 0; tens /= 10) pair.prompt.push_back(a / tens % 10);
  pair.prompt.push_back(plus);
  for (std::int64_t tens = 1000; tens > 0; tens /= 10) pair.prompt.push_back(b / tens % 10);
  pair.prompt.push_back(equals);
  for (std::int64_t tens = 1; tens <= 10000; tens *= 10) pair.answer.push_back((a + b) / tens % 10);
  return {pair};
}

}  // namespace

// The sum's digits come from the last to the first, as on paper, so that each depends on only one carry.
std::unique_ptr<Task> addition() {
  return std::make_unique<AnswerTask>(AnswerTask::Definition{
      .summary = "Add two numbers of 4 digits; write the sum from its last digit to its first",
      .vocabulary = detail::number_words(10, {"+", "="}),
      .instance = draw,
      .recipe = {.model = without_biases({.d_model = 64, .heads = 4, .layers = 2}),
                 .batch = 64,
                 .steps = 2500,
                 .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
