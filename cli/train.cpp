#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "fovea/autograd/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/parallel.h"
#include "fovea/error.h"
#include "fovea/inspect/heat_map.h"
#include "fovea/layers/one_head_model.h"
#include "fovea/train/agreement.h"
#include "fovea/train/clip.h"
#include "fovea/train/optimizer.h"

namespace fovea::cli {
namespace {

struct Settings {
  std::string task = "agreement";
  std::int64_t steps = 1000;
  std::int64_t batch = 64;
  std::int64_t d_model = 32;
  double learning_rate = 0.014;
  std::uint64_t seed = 1;
  int threads = fovea::threads();
};

// What training ends with: how far above the floor the loss may be.
constexpr double tolerance = 0.02;

// Of the norm of all gradients: an early large step can lock the head onto a wrong word for good.
constexpr double gradient_limit = 0.5;

// --- Training --------------------------------------------------------------------------------------------

// The mean loss of a batch per token, after its gradients are there.
CrossEntropy loss_with_gradients(const OneHeadModel& model, const Batch& batch) {
  CrossEntropy result =
      cross_entropy(model(batch.inputs), batch.targets, {.ignore_index = Agreement::padding});
  backward(result.loss);
  return result;
}

// From 1 to 0 along half a wave of the cosine, so that the noise of small batches dies away.
double falling(std::int64_t step, std::int64_t steps) {
  constexpr double pi = std::numbers::pi;
  return (1 + std::cos(pi * static_cast<double>(step) / static_cast<double>(steps))) / 2;
}

// The seconds that it took, or nothing if Ctrl-C has stopped it.
std::optional<double> train(OneHeadModel& model, const Agreement& task, const Settings& settings, Rng& rng) {
  AdamW optimizer(named_parameters(model), {.learning_rate = settings.learning_rate, .beta2 = 0.99});
  const Interrupt interrupt;
  Progress progress(settings.steps, stdout);
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    optimizer.set_learning_rate(settings.learning_rate * falling(step, settings.steps));
    const CrossEntropy result = loss_with_gradients(model, task.sample_batch(settings.batch, rng));
    const double loss = result.loss.item();
    if (!std::isfinite(loss)) {
      throw NonFiniteError(
          fmt::format("[train] the loss is not finite at step {}: try a smaller --lr than {}", step + 1,
                      settings.learning_rate));
    }
    clip_gradients(optimizer.parameters(), gradient_limit);
    optimizer.step();
    optimizer.zero_grad();
    progress.step(loss, result.count);
    if (interrupt.requested()) return std::nullopt;
  }
  return progress.seconds();
}

// --- The ending ------------------------------------------------------------------------------------------

std::string percent(const Agreement::Share& share) {
  return share.total > 0 ? fmt::format("{:.2f}%", 100 * share.value()) : "no case";
}

void print_accuracy(const char* name, const Agreement::Share& all, const Agreement::Share& opposed) {
  fmt::print("{:<10} {} right; {} where a noun between has the other number\n", name, percent(all),
             percent(opposed));
}

void print_score(const Agreement& task, const Agreement::Score& score, const Settings& settings,
                 double seconds) {
  fmt::print(
      "\n{:<10} {:.4f} nats per token: {:.4f} above the floor of {:.4f}; a bigram model reaches {:.4f}\n",
      "loss", score.loss, score.excess, task.entropy_floor(), task.bigram_loss());
  print_accuracy("verb", score.all.verb, score.opposed.verb);
  print_accuracy("predicate", score.all.predicate, score.opposed.predicate);
  fmt::print("{:<10} {:.1f}% on the subject, in the row that predicts the verb\n", "attention",
             100 * score.subject_attention.value());
  fmt::print("{:<10} {} steps of {} sentences in {:.1f} s\n", "training", with_commas(settings.steps),
             with_commas(settings.batch), seconds);
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

// --- The command -----------------------------------------------------------------------------------------

int train_agreement(const Settings& settings) {
  const Agreement task;
  Rng rng(settings.seed);
  OneHeadModel model(task.vocabulary().size(), settings.d_model, rng);
  fmt::print("One attention head learns agreement: {} parameters, seed {}, threads {}\n",
             with_commas(parameter_count(model)), settings.seed, threads());
  const std::optional<double> seconds = train(model, task, settings, rng);
  if (!seconds) {
    fmt::print(stderr, "fovea: interrupted\n");
    return interrupted_status;
  }
  const auto ask = [&](const Indices& ids) {
    const OneHeadModel::Prediction prediction = model.with_weights(ids);
    return Agreement::Prediction{prediction.logits, prediction.weights};
  };
  const Agreement::Score score = task.score(ask, rng);
  print_score(task, score, settings, *seconds);
  print_heat_map(task, model);
  if (score.excess <= tolerance) return 0;
  std::fflush(stdout);
  fmt::print(
      stderr,
      "fovea: the loss is {:.4f} above the floor, more than {} is too far: it has not learned the task\n",
      score.excess, tolerance);
  return 1;
}

// Without the range in the help text, where it would crowd out the words.
CLI::Validator from_1_to(int limit) { return CLI::Validator(CLI::Range(1, limit)).description(""); }

// The text of what is wrong with a number, or nothing.
std::string check_positive(const std::string& text) {
  double value = 0;
  const bool good = CLI::detail::lexical_cast(text, value) && value > 0 && std::isfinite(value);
  return good ? "" : fmt::format("{} is not a positive number", text);
}

std::string check_task(const std::string& name) {
  const std::vector<std::string> known{"agreement"};
  if (CLI::detail::find_member(name, known) >= 0) return "";
  return fmt::format("there is no task \"{}\"; there is: {}", name, fmt::join(known, ", "));
}

}  // namespace

Command train_command(CLI::App& program) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* parser = program.add_subcommand("train", "Train a model on a task and show what it has learned");
  parser->add_option("--task", settings->task, "What to learn: agreement")
      ->check(check_task)
      ->type_name("NAME");
  parser->add_option("--steps", settings->steps, "How many steps to train")->check(from_1_to(1000000000));
  parser->add_option("--batch", settings->batch, "Sentences in a step")->check(from_1_to(1000000));
  parser->add_option("--d-model", settings->d_model, "Channels of the model and of its head")
      ->check(from_1_to(65536));
  parser->add_option("--lr", settings->learning_rate, "Learning rate at first; it falls to 0 along a cosine")
      ->check(check_positive);
  parser->add_option("--seed", settings->seed, "Of all random numbers: the same seed, the same run")
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""));
  parser->add_option("--threads", settings->threads, "Threads to use; results do not depend on it")
      ->check(from_1_to(4096));
  return {parser, [settings] {
            set_threads(settings->threads);
            return train_agreement(*settings);
          }};
}

}  // namespace fovea::cli
