#include "cli/agreement.h"

#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/inspect/heat_map.h"
#include "fovea/train/tasks/agreement/agreement.h"

namespace fovea::cli {
namespace {

// How far above the floor the loss may be.
constexpr double tolerance = 0.02;

std::string percent(const Agreement::Share& share) {
  return share.total > 0 ? fmt::format("{:.2f}%", 100 * share.value()) : "no case";
}

void print_accuracy(const char* name, const Agreement::Share& all, const Agreement::Share& opposed) {
  fmt::print("{:<10} {} right; {} where a noun between has the other number\n", name, percent(all),
             percent(opposed));
}

void print_score(const Agreement& task, const Agreement::Score& score) {
  fmt::print(
      "{:<10} {:.4f} nats per token: {:.4f} above the floor of {:.4f}; a bigram model reaches {:.4f}\n",
      "loss", score.loss, score.excess, task.entropy_floor(), task.bigram_loss());
  print_accuracy("verb", score.all.verb, score.opposed.verb);
  print_accuracy("predicate", score.all.predicate, score.opposed.predicate);
  fmt::print("{:<10} {:.1f}% on the subject, in the row that predicts the verb\n", "attention",
             100 * score.subject_attention.value());
}

// What the model looks at in the example sentence, just before it says the verb.
void print_heat_map(const Agreement& task, const OneHeadModel& model) {
  const NoGrad no_grad;
  const Agreement::Sentence sentence = task.parse(Agreement::example);
  const std::span<const std::int64_t> ids(sentence.ids);
  const std::span<const std::int64_t> seen = ids.first(static_cast<std::size_t>(sentence.verb));
  const OneHeadModel::Prediction prediction = model.with_weights(Indices({1, sentence.verb}, seen));
  const std::int64_t row = sentence.verb - 1;
  const std::int64_t verb = ids[static_cast<std::size_t>(sentence.verb)];
  const double probability = softmax(prediction.logits).at({0, row, verb});

  std::vector<std::string> words;
  for (const std::int64_t id : seen) words.push_back(task.vocabulary().word(id));
  fmt::print("\n\"{}\": what the row that predicts \"{}\" ({:.0f}%) looks at\n\n{}", Agreement::example,
             task.vocabulary().word(verb), 100 * probability,
             heat_map(words, select(select(prediction.weights, 0, 0), 0, row),
                      {.colours = colours_of(stdout), .width = width_of(stdout)}));
}

}  // namespace

bool print_agreement(const OneHeadModel& model, Rng& rng) {
  const Agreement task;
  const auto ask = [&](const Indices& ids) {
    const OneHeadModel::Prediction prediction = model.with_weights(ids);
    return Agreement::Prediction{prediction.logits, prediction.weights};
  };
  const Agreement::Score score = task.score(ask, rng);
  print_score(task, score);
  print_heat_map(task, model);
  if (score.excess <= tolerance) return true;
  std::fflush(stdout);
  fmt::print(
      stderr,
      "fovea: the loss is {:.4f} above the floor, more than {} is too far: it has not learned the task\n",
      score.excess, tolerance);
  return false;
}

}  // namespace fovea::cli
