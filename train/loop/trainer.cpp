#include "fovea/train/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/train/optimizers/clip.h"
#include "train/loop/checkpoint_folder.h"
#include "train/loop/run_log.h"
#include "train/loop/trainer_options.h"
#include "train/loop/trainer_state.h"

namespace fovea {
namespace {

constexpr std::int64_t most_skipped_in_row = 10;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string non_finite_gradient(const std::vector<NamedTensor>& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const Tensor gradient = tensor.grad();
    if (!gradient.defined()) continue;
    if (!std::ranges::all_of(gradient.to_vector(), [](double x) { return std::isfinite(x); }))
      return fmt::format("gradient of {} is not finite", name);
  }
  return "the gradients' norm is not finite";
}

template <class Report>
void call_all(const std::vector<std::function<void(const Report&)>>& callbacks, const Report& report) {
  for (const auto& callback : callbacks) callback(report);
}

}  // namespace

Trainer::Trainer(detail::TrainedModel model, Optimizer& optimizer, BatchSource source, TrainerOptions options)
    : model_(std::move(model)),
      optimizer_(optimizer),
      source_(std::move(source)),
      options_(std::move(options)),
      state_(std::make_unique<detail::TrainerState>()) {
  detail::check_options(options_);
  if (!source_) fail<ValueError>("[Trainer] there is no source of batches");
  detail::check_parameters(named_parameters(model_), optimizer_);
  if (options_.average != 0) average_.emplace(named_parameters(model_), options_.average);
  Rng rng(options_.seed);
  state_->data_rng = rng.split().state();
  state_->dropout_rng = rng.split().state();
}

Trainer::~Trainer() = default;

void Trainer::on_step(std::function<void(const StepReport&)> callback) {
  on_step_.push_back(std::move(callback));
}
void Trainer::on_evaluation(std::function<void(const EvaluationReport&)> callback) {
  on_evaluation_.push_back(std::move(callback));
}

std::int64_t Trainer::step() const { return state_->step; }

// --- One step --------------------------------------------------------------------------------------------

std::optional<Batch> Trainer::next_batch() {
  Rng rng(state_->data_rng);
  std::optional<Batch> batch = source_(state_->batches, rng);
  if (batch) {
    state_->data_rng = rng.state();
    ++state_->batches;
  }
  return batch;
}

Tensor Trainer::training_logits(const Indices& ids) {
  const TrainMode scope{Rng(state_->dropout_rng)};
  Tensor logits = model_.logits(ids);
  state_->dropout_rng = scope.rng().state();
  return logits;
}

Trainer::Window Trainer::accumulate_gradients() {
  CrossEntropyOptions summed = options_.loss;
  summed.reduction = Reduction::sum;
  optimizer_.zero_grad();
  Window window;
  while (window.batches < options_.accumulate) {
    const std::optional<Batch> batch = next_batch();
    if (!batch) break;
    const CrossEntropy result = cross_entropy(training_logits(batch->inputs), batch->targets, summed);
    backward(result.loss);
    ++window.batches;
    window.tokens += result.count;
    window.loss_sum += result.loss.item();
    window.divisor += result.divisor;
  }
  if (window.divisor > 0) {
    const NoGrad no_grad;
    for (const auto& [name, tensor] : optimizer_.parameters()) {
      if (const Tensor sum = tensor.grad(); sum.defined()) tensor.set_grad(sum / window.divisor);
    }
  }
  return window;
}

// Clips, and says why the step can't be taken, or nothing.
std::string Trainer::reason_to_skip(const Window& window, double& gradient_norm) {
  if (window.divisor == 0) return "no target";
  try {
    gradient_norm = clip_gradients(optimizer_.parameters(), options_.clip);
  } catch (const NonFiniteError&) {
    gradient_norm = nan;
  }
  const double loss = window.loss();
  if (!std::isfinite(loss) || !std::isfinite(gradient_norm)) {
    ++state_->skipped_non_finite;
    return std::isfinite(loss) ? non_finite_gradient(optimizer_.parameters()) : "loss is not finite";
  }
  const std::optional<double> limit = state_->recent.limit(options_.outlier);
  if (options_.outlier > 0 && limit && loss > *limit) {
    ++state_->skipped_outliers;
    return fmt::format("loss {:.4f} is above {:.4f}, {} deviations over the mean of recent ones", loss,
                       *limit, options_.outlier);
  }
  return "";
}

void Trainer::check_skipped_in_row(const StepReport& last) const {
  if (state_->skipped_in_row < most_skipped_in_row) return;
  const std::string text = fmt::format(
      "[Trainer::run] {} steps in a row were skipped, up to step {}: {}. Weights are those of step {}. ",
      state_->skipped_in_row, last.step, last.skipped, last.step - state_->skipped_in_row);
  if (!std::isfinite(last.loss) || !std::isfinite(last.gradient_norm)) {
    fail<NonFiniteError>(
        "{}Try a smaller learning rate, a longer warm-up or a lower clip; an Anomaly scope "
        "finds the op where it arises",
        text);
  }
  fail<ValueError>("{}Look at the batches, or allow more by a larger outlier", text);
}

// False if the data have ended before it.
bool Trainer::train_step() {
  const auto begin = Clock::now();
  if (options_.learning_rate) optimizer_.set_learning_rate(options_.learning_rate(state_->step));
  const Window window = accumulate_gradients();
  if (window.batches == 0) return false;
  StepReport report{.step = state_->step + 1,
                    .steps = options_.steps,
                    .loss = window.loss(),
                    .tokens = window.tokens,
                    .learning_rate = optimizer_.learning_rate()};
  report.skipped = reason_to_skip(window, report.gradient_norm);
  if (report.skipped.empty()) {
    optimizer_.step();
    if (average_) average_->update();
    state_->tokens += report.tokens;
    state_->recent.add(report.loss);
    state_->skipped_in_row = 0;
  } else {
    ++state_->skipped_in_row;
  }
  state_->step = report.step;
  state_->loss = report.loss;
  saved_ = false;
  if (log_) {
    log_->step(report, state_->tokens, seconds(),
               std::chrono::duration<double>(Clock::now() - begin).count());
  }
  call_all(on_step_, report);
  check_skipped_in_row(report);
  return true;
}

// --- Evaluation ------------------------------------------------------------------------------------------

EvaluationReport Trainer::evaluate() {
  if (!options_.evaluation) fail<ValueError>("[Trainer::evaluate] TrainerOptions::evaluation is empty");
  // Swapped back also when an error passes.
  struct Averaged {
    std::optional<Ema>& average;
    explicit Averaged(std::optional<Ema>& which) : average(which) {
      if (average) average->swap();
    }
    ~Averaged() {
      if (average) average->swap();
    }
  };
  const Averaged averaged(average_);
  const auto [loss, tokens] = fovea::evaluate(model_.logits, options_.evaluation, options_.loss.ignore_index);
  if (tokens == 0) fail<ValueError>("[Trainer::evaluate] there is no target in the evaluation's batches");
  const double best = state_->best_evaluation.value_or(std::numeric_limits<double>::infinity());
  return {.step = state_->step, .loss = loss, .tokens = tokens, .best = loss < best};
}

// As part of the run.
void Trainer::evaluate_and_keep() {
  const EvaluationReport report = evaluate();
  state_->evaluated_at = report.step;
  state_->evaluation = report.loss;
  ++state_->evaluations_since_best;
  if (report.best) {
    state_->best_evaluation = report.loss;
    state_->evaluations_since_best = 0;
  }
  saved_ = false;
  if (log_) log_->evaluation(report);
  if (report.best && folder_) folder_->save_best(tensors(), metadata());
  call_all(on_evaluation_, report);
}

// --- The run ---------------------------------------------------------------------------------------------

double Trainer::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

bool Trainer::is_due(std::int64_t every) const { return every > 0 && state_->step % every == 0; }

// What ends a run is a function of the run.
std::optional<Ending> Trainer::ending() const {
  if (state_->step >= options_.steps) return Ending::finished;
  if (options_.patience > 0 && state_->evaluations_since_best >= options_.patience) return Ending::early_stop;
  if (options_.tokens && state_->tokens >= *options_.tokens) return Ending::out_of_tokens;
  return std::nullopt;
}

// What stops it is not: resumed, it goes on.
std::optional<Ending> Trainer::stop() const {
  if (options_.stop && options_.stop()) return Ending::interrupted;
  if (options_.seconds && seconds() >= *options_.seconds) return Ending::out_of_time;
  return std::nullopt;
}

Ending Trainer::train() {
  std::optional<Ending> end = ending();
  while (!end) {
    if (!train_step()) return Ending::data_ended;
    if (is_due(options_.evaluate_every)) evaluate_and_keep();
    end = ending();
    if (!end) end = stop();
    if (!end && is_due(options_.checkpoint_every)) save();
  }
  return *end;
}

TrainingResult Trainer::finish(Ending ending) {
  const bool stopped = ending == Ending::interrupted || ending == Ending::out_of_time;
  const bool evaluated = !options_.evaluation || state_->evaluated_at == state_->step;
  if (!stopped && !evaluated) evaluate_and_keep();
  if (!saved_) save();
  TrainingResult result{
      .ending = ending, .step = state_->step, .tokens = state_->tokens, .loss = state_->loss};
  if (state_->evaluated_at >= 0) result.evaluation = state_->evaluation;
  if (ending == Ending::out_of_time && !evaluated) {
    // After the checkpoint, for it is not what a run does that goes through: resumed, the log is cut here.
    EvaluationReport report = evaluate();
    report.best = false;  // it is not kept
    if (log_) log_->evaluation(report);
    call_all(on_evaluation_, report);
    result.evaluation = report.loss;
  }
  result.seconds = seconds();
  result.best_evaluation = state_->best_evaluation;
  result.skipped_non_finite = state_->skipped_non_finite;
  result.skipped_outliers = state_->skipped_outliers;
  return result;
}

TrainingResult Trainer::run() {
  start_ = Clock::now();
  try {
    open_folder();
    const TrainingResult result = finish(train());
    if (log_) log_->flush();
    log_.reset();
    folder_.reset();
    return result;
  } catch (...) {
    if (log_) state_->log_sizes = log_->sizes();
    log_.reset();
    folder_.reset();
    throw;
  }
}

}  // namespace fovea
