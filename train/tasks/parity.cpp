#include "fovea/train/tasks/answer_task.h"
#include "train/tasks/base/number_words.h"

namespace fovea::tasks {
namespace {

constexpr std::int64_t bits = 16, equals = 2;

std::vector<PromptAnswer> draw(Rng& rng) {
  PromptAnswer round{.prompt = detail::random_numbers(bits, 2, rng), .answer = {}};
  std::int64_t so_far = 0;
  for (const std::int64_t bit : round.prompt) round.answer.push_back(so_far ^= bit);
  round.prompt.push_back(equals);
  return {round};
}

}  // namespace

// From all bits at once to their parity there is no slope to descend: no part of the bits tells anything. So
// the answer is worked out: the parity of the first bit, of the first two, and so on to that of all 16.
std::unique_ptr<Task> parity() {
  return std::make_unique<AnswerTask>(
      AnswerTask::Definition{.summary = "Say the parity of the first bit, of the first two, ..., of all 16",
                             .vocabulary = detail::number_words(2, {"="}),
                             .instance = draw,
                             .recipe = {.model = {.d_model = 64,
                                                  .heads = 2,
                                                  .layers = 2,
                                                  .dropout = 0,
                                                  .positions = Positions::rotary,
                                                  .bias = false},
                                        .batch = 64,
                                        .steps = 500,
                                        .learning_rate = 3e-3}});
}

}  // namespace fovea::tasks
