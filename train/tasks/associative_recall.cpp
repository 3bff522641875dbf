#include "fovea/train/tasks/answer_task.h"
#include "train/tasks/base/number_words.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t pairs = 8, keys = 26, values = 10;

// The keys are letters, and the values are digits.
Vocabulary letters_and_digits() {
  std::vector<std::string> words;
  for (char letter = 'a'; letter <= 'z'; ++letter) words.emplace_back(1, letter);
  for (std::int64_t i = 0; i < values; ++i) words.push_back(std::to_string(i));
  return Vocabulary(std::move(words));
}

std::vector<PromptAnswer> draw(Rng& rng) {
  std::vector<std::int64_t> told, key = detail::different_numbers(pairs, keys, rng), value;
  for (std::int64_t i = 0; i < pairs; ++i) {
    value.push_back(keys + rng.uniform_int(values));
    told.insert(told.end(), {key[static_cast<std::size_t>(i)], value.back()});
  }
  std::vector<PromptAnswer> questions;
  for (const std::int64_t asked : detail::different_numbers(pairs, pairs, rng)) {
    const auto i = static_cast<std::size_t>(asked);
    questions.push_back({.prompt = {key[i]}, .answer = {value[i]}});
  }
  questions.front().prompt.insert(questions.front().prompt.begin(), told.begin(), told.end());
  return questions;
}

}  // namespace

// Arora et al. 2023, "Zoology". All keys are asked for, not only one, so that each batch teaches more.
std::unique_ptr<Task> associative_recall() {
  return std::make_unique<AnswerTask>(AnswerTask::Definition{
      .summary = "Given 8 letters, each with a digit, say the digit of every letter, in random order",
      .vocabulary = letters_and_digits(),
      .instance = draw,
      .recipe = {.model = without_biases({.d_model = 64, .heads = 1, .layers = 2}),
                 .batch = 64,
                 .steps = 500,
                 .optimizer = OptimizerKind::muon,
                 .beta1 = 0.95,
                 .weight_decay = 0.01,
                 .adam_lr_scale = 0.25,
                 .learning_rate = 0.02,
                 .final_learning_rate = 0.002}});
}

}  // namespace fovea::tasks
