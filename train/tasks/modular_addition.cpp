#include "fovea/train/tasks/answer_task.h"
#include "train/tasks/base/number_words.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t p = 97, plus = p, equals = p + 1;

std::vector<PromptAnswer> draw(Rng& rng) {
  const std::int64_t a = rng.uniform_int(p), b = rng.uniform_int(p);
  return {{.prompt = {a, plus, b, equals}, .answer = {(a + b) % p}}};
}

}  // namespace

// Power et al. 2022, "Grokking": a model soon knows the pairs that it has seen by heart, but gets held-out
// pairs right only when weight decay has led it to the rule.
std::unique_ptr<Task> modular_addition() {
  return std::make_unique<AnswerTask>(
      AnswerTask::Definition{.summary = "Say a + b mod 97, with half of all pairs (a, b) held out",
                             .vocabulary = detail::number_words(p, {"+", "="}),
                             .instance = draw,
                             .held_out = 0.5,
                             .recipe = {.model = without_biases({.d_model = 128, .heads = 4, .layers = 1}),
                                        .batch = 512,
                                        .steps = 800,
                                        .beta2 = 0.98,
                                        .weight_decay = 1,
                                        .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
