#include <algorithm>

#include "fovea/train/answer_task.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t pairs = 8, keys = 26, values = 26;

// Keys are letters, and values the numbers after them.
Vocabulary letters_and_numbers() {
  std::vector<std::string> words;
  for (char letter = 'a'; letter <= 'z'; ++letter) words.emplace_back(1, letter);
  for (std::int64_t i = 0; i < values; ++i) words.push_back(std::to_string(i));
  return Vocabulary(std::move(words));
}

Instance draw(Rng& rng) {
  std::vector<std::int64_t> prompt;
  while (std::ssize(prompt) < 2 * pairs) {
    const std::int64_t key = rng.below(keys);
    if (std::ranges::find(prompt, key) != prompt.end()) continue;  // a key has one value
    prompt.push_back(key);
    prompt.push_back(keys + rng.below(values));
  }
  const auto asked = static_cast<std::size_t>(2 * rng.below(pairs));
  const std::int64_t value = prompt[asked + 1];
  prompt.push_back(prompt[asked]);
  return {.prompt = prompt, .answer = {value}};
}

}  // namespace

std::unique_ptr<Task> associative_recall() {
  return std::make_unique<AnswerTask>(AnswerTask::Definition{
      .summary = "Given 8 keys, each with a value, and one of the keys again, say its value",
      .vocabulary = letters_and_numbers(),
      .instance = draw,
      .recipe = {.model = {.d_model = 64, .heads = 2, .layers = 2, .dropout = 0, .bias = false},
                 .batch = 64,
                 .steps = 2000,
                 .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
