#include <algorithm>
#include <utility>

#include "fovea/train/tasks/answer_task.h"

namespace fovea::tasks {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t length = 24;
enum Word : std::int64_t { no, yes, open, close, question };

// The number of ways in which `left` more brackets lead from a depth to 0 without going below 0.
std::int64_t endings(std::int64_t left, std::int64_t depth) {
  if (depth < 0 || depth > left) return 0;
  if (left == 0) return 1;
  // The reflection principle (Andre 1887) leaves out the paths that touch -1; r of the `left` brackets open.
  const std::int64_t r = (left - depth) / 2;
  std::int64_t ways = 1;
  for (std::int64_t i = 0; i < r; ++i) ways = ways * (left - i) / (i + 1);
  return (left - depth) % 2 != 0 ? 0 : ways * (depth + 1) / (left - r + 1);
}

// Draws uniformly from all balanced sequences: the next bracket opens with the share of those in which it
// does.
Ids draw_balanced(Rng& rng) {
  Ids brackets;
  for (std::int64_t left = length, depth = 0; left > 0; --left) {
    const bool opens = rng.uniform_int(endings(left, depth)) < endings(left - 1, depth + 1);
    brackets.push_back(opens ? open : close);
    depth += opens ? 1 : -1;
  }
  return brackets;
}

bool is_balanced(const Ids& brackets) {
  std::int64_t depth = 0;
  for (const std::int64_t bracket : brackets) {
    depth += bracket == open ? 1 : -1;
    if (depth < 0) return false;
  }
  return depth == 0;
}

// Exchanges two brackets of a balanced sequence, so that as many open as close, but in a wrong order.
Ids draw_near_miss(Rng& rng) {
  while (true) {
    Ids brackets = draw_balanced(rng);
    std::swap(brackets[static_cast<std::size_t>(rng.uniform_int(length))],
              brackets[static_cast<std::size_t>(rng.uniform_int(length))]);
    if (!is_balanced(brackets)) return brackets;
  }
}

std::vector<PromptAnswer> draw(Rng& rng) {
  const bool balanced = rng.uniform_int(2) == 1;
  PromptAnswer pair{.prompt = balanced ? draw_balanced(rng) : draw_near_miss(rng),
                    .answer = {balanced ? yes : no}};
  pair.prompt.push_back(question);
  return {pair};
}

}  // namespace

std::unique_ptr<Task> balanced_brackets() {
  return std::make_unique<AnswerTask>(
      AnswerTask::Definition{.summary = "Say whether 24 brackets are balanced; 12 of them open in any case",
                             .vocabulary = Vocabulary({"no", "yes", "(", ")", "?"}),
                             .instance = draw,
                             .recipe = {.model = without_biases({.d_model = 64, .heads = 2, .layers = 2}),
                                        .batch = 64,
                                        .steps = 800,
                                        .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
