#include "fovea/train/tasks/answer_task.h"
#include "train/tasks/base/number_words.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t length = 16, kinds = 32, equals = kinds;

std::vector<PromptAnswer> draw(Rng& rng) {
  std::vector<std::int64_t> prompt = detail::random_numbers(length, kinds, rng);
  const std::vector<std::int64_t> answer = prompt;
  prompt.push_back(equals);
  return {{.prompt = prompt, .answer = answer}};
}

}  // namespace

std::unique_ptr<Task> copy() {
  return std::make_unique<AnswerTask>(
      AnswerTask::Definition{.summary = "Repeat 16 random tokens of 32 kinds",
                             .vocabulary = detail::number_words(kinds, {"="}),
                             .instance = draw,
                             .recipe = {.model = without_biases({.d_model = 64, .heads = 2, .layers = 2}),
                                        .batch = 32,
                                        .steps = 400,
                                        .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
