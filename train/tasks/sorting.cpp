#include <algorithm>

#include "fovea/train/tasks/answer_task.h"
#include "train/tasks/base/number_words.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t length = 16, kinds = 32, equals = kinds;

std::vector<PromptAnswer> draw(Rng& rng) {
  std::vector<std::int64_t> prompt = detail::random_numbers(length, kinds, rng);
  std::vector<std::int64_t> answer = prompt;
  std::ranges::sort(answer);
  prompt.push_back(equals);
  return {{.prompt = prompt, .answer = answer}};
}

}  // namespace

std::unique_ptr<Task> sorting() {
  return std::make_unique<AnswerTask>(
      AnswerTask::Definition{.summary = "Sort 16 random numbers below 32",
                             .vocabulary = detail::number_words(kinds, {"="}),
                             .instance = draw,
                             .recipe = {.model = without_biases({.d_model = 64, .heads = 2, .layers = 2}),
                                        .batch = 32,
                                        .steps = 3500,
                                        .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
