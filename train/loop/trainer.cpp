#include "fovea/train/loop/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/train/optimizers/clip.h"
#include "train/loop/callbacks.h"
#include "train/loop/trainer_options.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

// The norm before clipping; NaN if a gradient is not finite.
double clip_or_nan(const std::vector<NamedTensor>& parameters, double max_norm) {
  try {
    return clip_gradients(parameters, max_norm);
  } catch (const NonFiniteError&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

Trainer::Trainer(detail::TrainedModel model, Optimizer& optimizer, BatchSource source, TrainerOptions options)
    : model_(std::move(model)),
      optimizer_(optimizer),
      source_(std::move(source)),
      options_(std::move(options)) {
  detail::check_options(options_);
  if (!source_) fail<ValueError>("[Trainer] the source of batches is empty: give it a function");
  detail::check_parameters(named_parameters(model_), optimizer_);
  if (options_.ema_decay != 0) average_.emplace(named_parameters(model_), options_.ema_decay);
  Rng rng(options_.seed);
  status_.data_rng = rng.split().state();
  status_.dropout_rng = rng.split().state();
}

void Trainer::visit(const Trainer& self, Visitor& v) {
  v("model", self.model_);
  v("optimizer", self.optimizer_);
  v("average", self.average_);
}

// --- The loop --------------------------------------------------------------------------------------------

StopReason Trainer::run() {
  try {
    return train();
  } catch (...) {
    try {
      if (!updating_) detail::call_all(on_failure_);
    } catch (...) {  // The error that ends the training says more than one that follows it.
    }
    throw;
  }
}

StopReason Trainer::train() {
  // An evaluation that an error or a signal kept from being made after the last step comes first.
  std::optional<StopReason> stop = is_evaluation_due() ? end_step() : reason_to_stop();
  while (!stop) {
    stop = train_step();
    if (!stop) stop = end_step();
  }
  const bool evaluated = !options_.evaluation || status_.evaluated_at == status_.step;
  if (is_final(*stop) && !evaluated && !evaluate_and_report()) stop = StopReason::interrupted;
  detail::call_all(on_step_end_, stop);
  return *stop;
}

// Evaluates if it is time, and tells those who listen, unless training stops.
std::optional<StopReason> Trainer::end_step() {
  if (is_evaluation_due() && !evaluate_and_report()) return StopReason::interrupted;
  const std::optional<StopReason> stop = reason_to_stop();
  if (!stop) detail::call_all(on_step_end_, stop);
  return stop;
}

std::optional<StopReason> Trainer::reason_to_stop() const {
  if (status_.step >= options_.steps) return StopReason::all_steps;
  for (const StopCondition& condition : stop_conditions_) {
    if (const std::optional<StopReason> reason = condition(status_)) return reason;
  }
  return std::nullopt;
}

bool Trainer::is_interrupted() const {
  return std::ranges::any_of(stop_conditions_, [&](const StopCondition& condition) {
    return condition(status_) == StopReason::interrupted;
  });
}

// --- One step --------------------------------------------------------------------------------------------

// Returns why the step was not taken; nothing if it was.
std::optional<StopReason> Trainer::train_step() {
  const auto begin = Clock::now();
  const TrainerStatus before = status_;
  StepReport report{.step = status_.step + 1, .steps = options_.steps};
  try {
    if (const std::optional<StopReason> stop = learn(report)) {
      status_ = before;
      return stop;
    }
  } catch (...) {
    status_ = before;
    throw;
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  detail::call_all(on_step_, report);
  check_skipped_in_row(report);
  return std::nullopt;
}

// Computes gradients, and updates the weights by them.
std::optional<StopReason> Trainer::learn(StepReport& report) {
  if (options_.learning_rate) optimizer_.set_learning_rate(options_.learning_rate(status_.step));
  const std::optional<BatchSums> sums = accumulate_gradients();
  if (!sums) return StopReason::interrupted;
  if (sums->batches == 0) return StopReason::end_of_data;
  report.loss = sums->divisor > 0 ? sums->loss / sums->divisor : 0;
  report.tokens = sums->tokens;
  report.learning_rate = optimizer_.learning_rate();
  report.gradient_norm = clip_or_nan(optimizer_.parameters(), options_.clip);
  report.skipped = reason_to_skip(*sums, report);
  if (report.skipped.empty()) {
    update_weights(report);
  } else {
    ++status_.skipped_in_row;
  }
  status_.step = report.step;
  status_.loss = report.loss;
  return std::nullopt;
}

std::optional<Batch> Trainer::next_batch() {
  Rng rng(status_.data_rng);
  std::optional<Batch> batch = source_(status_.batches, rng);
  if (batch) {
    status_.data_rng = rng.state();
    ++status_.batches;
  }
  return batch;
}

Tensor Trainer::training_logits(const Indices& ids) {
  const TrainMode scope{Rng(status_.dropout_rng)};
  Tensor logits = model_.logits(ids);
  status_.dropout_rng = scope.rng().state();
  return logits;
}

// Returns nothing if it was interrupted.
std::optional<Trainer::BatchSums> Trainer::accumulate_gradients() {
  CrossEntropyOptions summed = options_.loss;
  summed.reduction = Reduction::sum;
  optimizer_.zero_grad();
  BatchSums sums;
  while (sums.batches < options_.accumulate) {
    if (sums.batches > 0 && is_interrupted()) return std::nullopt;
    const std::optional<Batch> batch = next_batch();
    if (!batch) break;
    const CrossEntropy result = cross_entropy(training_logits(batch->inputs), batch->targets, summed);
    backward(result.loss);
    ++sums.batches;
    sums.tokens += result.count;
    sums.loss += result.loss.item();
    sums.divisor += result.divisor;
  }
  if (sums.divisor > 0) {
    const NoGrad no_grad;
    for (const auto& [name, tensor] : optimizer_.parameters()) {
      if (const Tensor gradient = tensor.grad(); gradient.defined()) tensor.set_grad(gradient / sums.divisor);
    }
  }
  return sums;
}

void Trainer::update_weights(const StepReport& report) {
  updating_ = true;
  optimizer_.step();
  if (average_) average_->update();
  updating_ = false;
  status_.tokens += report.tokens;
  status_.recent_losses.add(report.loss);
  status_.skipped_in_row = 0;
}

// --- Evaluation ------------------------------------------------------------------------------------------

bool Trainer::is_evaluation_due() const {
  const std::int64_t every = options_.evaluate_every, step = status_.step;
  return every > 0 && step > 0 && step % every == 0 && status_.evaluated_at != step;
}

Evaluation Trainer::measure(const EvaluationSource& batches) {
  std::optional<AveragedWeights> averaged;
  if (average_) averaged.emplace(*average_);
  return fovea::evaluate(model_.logits, batches, options_.loss.ignore_index);
}

EvaluationReport Trainer::report_of(const Evaluation& evaluation) const {
  const auto [loss, tokens] = evaluation;
  if (tokens == 0) fail<ValueError>("[Trainer::evaluate] there is no target in the evaluation's batches");
  const double best = status_.best_evaluation.value_or(std::numeric_limits<double>::infinity());
  return {.step = status_.step, .loss = loss, .tokens = tokens, .best = loss < best};
}

EvaluationReport Trainer::evaluate() {
  if (!options_.evaluation) {
    fail<ValueError>("[Trainer::evaluate] there is no held-out data: set TrainerOptions::evaluation");
  }
  return report_of(measure(options_.evaluation));
}

// Returns false if it was interrupted, in which case nothing is reported.
bool Trainer::evaluate_and_report() {
  bool interrupted = false;
  const Evaluation evaluation = measure([&](std::int64_t index) -> std::optional<Batch> {
    interrupted = is_interrupted();
    return interrupted ? std::nullopt : options_.evaluation(index);
  });
  if (interrupted) return false;
  const EvaluationReport report = report_of(evaluation);
  status_.evaluated_at = report.step;
  status_.evaluation = report.loss;
  ++status_.evaluations_since_best;
  if (report.best) {
    status_.best_evaluation = report.loss;
    status_.evaluations_since_best = 0;
  }
  detail::call_all(on_evaluation_, report);
  return true;
}

}  // namespace fovea
