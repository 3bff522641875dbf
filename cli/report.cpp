#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "autograd/base/columns.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/inspect/heat_map.h"
#include "fovea/layers/tap.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {
namespace {

// Every run is judged on the same instances, whatever its own seed.
constexpr std::uint64_t score_seed = 0x5c04e;

TrainedModel trained(const Model& model) {
  const auto attention = [&model](const Indices& ids) {
    return std::visit(
        [&ids](const auto& network) {
          const NoGrad no_grad;
          Hooks hooks(network);
          hooks.record("*attention.weights");
          network(ids);
          std::vector<Tensor> maps;
          for (const Tapped& tapped : hooks.records()) maps.push_back(tapped.value);
          return maps;
        },
        model.network);
  };
  return {.logits = [&model](const Indices& ids) { return model(ids); }, .attention = attention};
}

std::string text_of(const Metric& metric, double value) {
  if (metric.unit == Metric::Unit::share) return fmt::format("{:.2f}%", 100 * value);
  return fmt::format("{:.4f} nats per token", value);
}

// "at least 99.00%"
std::string needed(const Metric& metric) {
  const char* bound = metric.better == Metric::Better::higher ? "at least" : "at most";
  return fmt::format("{} {}", bound, text_of(metric, metric.limit()));
}

void print_metric(const Metric& metric, std::size_t width) {
  fmt::print("{}  {}", detail::padded(metric.name, width), text_of(metric, metric.value));
  if (metric.unit == Metric::Unit::nats && metric.right != 0) fmt::print("; at best {:.4f}", metric.right);
  if (!metric.note.empty()) fmt::print("; {}", metric.note);
  fmt::print("{}\n", metric.reached() ? "" : fmt::format("; NOT REACHED: {} is needed", needed(metric)));
}

void print_exhibit(const Exhibit& exhibit) {
  fmt::print("\n{}\n", exhibit.text);
  if (!exhibit.weights.defined()) return;
  const HeatMapOptions options{.colours = colours_of(stdout), .width = width_of(stdout)};
  fmt::print("\n{}", heat_map(exhibit.words, exhibit.weights, options));
}

}  // namespace

void print_loss(const Evaluation& evaluation) {
  fmt::print("validation loss {:.4f} nats per token (perplexity {:.3f}) over {} tokens\n", evaluation.loss,
             std::exp(evaluation.loss), with_commas(evaluation.tokens));
}

std::vector<Metric> print_score(const Settings& settings, const Model& model) {
  const std::unique_ptr<Task> task = make_task(settings.task);
  const TrainedModel examined = trained(model);
  Rng rng(score_seed);
  const std::vector<Metric> metrics = task->score(examined.logits, rng);
  std::size_t width = 0;
  for (const Metric& metric : metrics) width = std::max(width, detail::column_count(metric.name));
  fmt::print("\n");
  for (const Metric& metric : metrics) print_metric(metric, width);
  for (const Exhibit& exhibit : task->exhibits(examined, rng)) print_exhibit(exhibit);
  return metrics;
}

bool check_score(const std::vector<Metric>& metrics) {
  const auto missed = std::ranges::find_if_not(metrics, &Metric::reached);
  if (missed == metrics.end()) return true;
  print_error(fmt::format("the model has not learned the task: {} is {}, but {} is needed; try more --steps",
                          missed->name, text_of(*missed, missed->value), needed(*missed)));
  return false;
}

}  // namespace fovea::cli
