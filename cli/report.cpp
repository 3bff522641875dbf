#include "cli/report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/agreement.h"
#include "cli/terminal.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {
namespace {

// The same instances each time, whatever the run's seed.
constexpr std::uint64_t score_seed = 0x5c04e;

std::string text_of(const Measure& measure, double value) {
  if (measure.unit == Measure::Unit::share) return fmt::format("{:.2f}%", 100 * value);
  return fmt::format("{:.4f} nats", value);
}

void print_measure(const Measure& measure) {
  const char* relation = measure.better == Measure::Better::higher ? "at least" : "at most";
  const double limit = measure.better == Measure::Better::higher ? measure.right - measure.allowed
                                                                 : measure.right + measure.allowed;
  fmt::print("{:<28} {:>12}   right is {}; {} {} counts: {}\n", measure.name, text_of(measure, measure.value),
             text_of(measure, measure.right), relation, text_of(measure, limit),
             measure.reached() ? "reached" : "NOT reached");
}

}  // namespace

void print_loss(const Evaluation& evaluation) {
  fmt::print("validation loss {:.4f} nats per token (perplexity {:.3f}) over {} tokens\n", evaluation.loss,
             std::exp(evaluation.loss), with_commas(evaluation.tokens));
}

bool print_score(const Settings& settings, const Model& model) {
  Rng rng(score_seed);
  if (settings.task == "agreement" && settings.recipe.kind == ModelKind::one_head)
    return print_agreement(std::get<OneHeadModel>(model.network), rng);
  const std::unique_ptr<Task> task = make_task(settings.task);
  bool reached = true;
  for (const Measure& measure : task->score([&](const Indices& ids) { return model(ids); }, rng)) {
    print_measure(measure);
    reached = reached && measure.reached();
  }
  std::fflush(stdout);
  if (!reached) fmt::print(stderr, "fovea: it has not learned the task: train for more --steps\n");
  return reached;
}

}  // namespace fovea::cli
