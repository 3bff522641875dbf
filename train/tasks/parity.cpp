#include "fovea/train/tasks/answer_task.h"
#include "train/tasks/base/number_words.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t bits = 16, equals = 2;

std::vector<PromptAnswer> draw(Rng& rng) {
  PromptAnswer pair{.prompt = detail::random_numbers(bits, 2, rng), .answer = {}};
  std::int64_t so_far = 0;
  for (const std::int64_t bit : pair.prompt) pair.answer.push_back(so_far ^= bit);
  pair.prompt.push_back(equals);
  return {pair};
}

}  // namespace

// The parity of all bits at once can't be learned by gradient descent, because no proper subset of the bits
// says anything about it. So the answer gives the steps: the parity of the first bit, of the first two, up to
// all 16.
std::unique_ptr<Task> parity() {
  return std::make_unique<AnswerTask>(AnswerTask::Definition{
      .summary = "Say the parity of the first bit, of the first two, up to that of all 16",
      .vocabulary = detail::number_words(2, {"="}),
      .instance = draw,
      .recipe = {
          .model = without_biases({.d_model = 64, .heads = 2, .layers = 2, .positions = Positions::rotary}),
          .batch = 64,
          .steps = 500,
          .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
