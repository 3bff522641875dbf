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

std::string text_of(const Metric& metric, double value) {
  if (metric.unit == Metric::Unit::share) return fmt::format("{:.2f}%", 100 * value);
  return fmt::format("{:.4f} nats", value);
}

void print_measure(const Metric& metric) {
  const char* relation = metric.better == Metric::Better::higher ? "at least" : "at most";
  const double limit =
      metric.better == Metric::Better::higher ? metric.right - metric.allowed : metric.right + metric.allowed;
  fmt::print("{:<28} {:>12}   right is {}; {} {} counts: {}\n", metric.name, text_of(metric, metric.value),
             text_of(metric, metric.right), relation, text_of(metric, limit),
             metric.reached() ? "reached" : "NOT reached");
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
  for (const Metric& metric : task->score([&](const Indices& ids) { return model(ids); }, rng)) {
    print_measure(metric);
    reached = reached && metric.reached();
  }
  std::fflush(stdout);
  if (!reached) fmt::print(stderr, "fovea: it has not learned the task: train for more --steps\n");
  return reached;
}

}  // namespace fovea::cli
