#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/loop/evaluate.h"
#include "fovea/train/loop/stop_conditions.h"
#include "fovea/train/loop/trainer_status.h"
#include "fovea/train/optimizers/ema.h"
#include "fovea/train/optimizers/optimizer.h"

namespace fovea {

/// The training data: returns batch number `index`, counted from 0, or nothing after the last. All randomness
/// must come from `rng`, so that a resumed run draws the same batches.
using BatchSource = std::function<std::optional<Batch>(std::int64_t index, Rng& rng)>;

struct TrainerOptions {
  std::int64_t steps = 1000;
  /// The learning rate of each step, counted from 0: a Schedule. Empty: the optimizer's own rate.
  std::function<double(std::int64_t step)> learning_rate = {};
  std::int64_t accumulate = 1;  ///< number of batches whose gradients are summed in one step
  double clip = std::numeric_limits<double>::infinity();  ///< maximal norm of all gradients together
  /// Decay of an exponential moving average of the weights, which evaluation then uses (see Ema); 0: none.
  double ema_decay = 0;
  /// Skip a step whose loss is more than this many standard deviations above the mean of recent losses;
  /// 0: never.
  double skip_loss_above_sigma = 0;
  CrossEntropyOptions loss{.ignore_index = ignored_target};
  std::uint64_t seed = 1;  ///< of the batches and of dropout

  EvaluationSource evaluation = {};  ///< held-out data
  std::int64_t evaluate_every = 0;   ///< steps between evaluations; 0: only when training is complete
};

/// What happened in one step.
struct StepReport {
  std::int64_t step = 0;     ///< its number, counted from 1
  std::int64_t steps = 0;    ///< TrainerOptions::steps
  double loss = 0;           ///< mean over the step's targets
  std::int64_t tokens = 0;   ///< number of targets in the step
  double learning_rate = 0;  ///< the rate that was used
  double gradient_norm = 0;  ///< before clipping
  double seconds = 0;        ///< how long the step took
  std::string skipped = {};  ///< why the weights were not updated; empty if they were
};

/// What an evaluation found.
struct EvaluationReport {
  std::int64_t step = 0;    ///< completed steps
  double loss = 0;          ///< mean over all targets of the evaluation
  std::int64_t tokens = 0;  ///< number of targets
  bool best = false;        ///< whether the loss is lower than in every evaluation before
};

/// A layer that maps ids (B, T) to logits (B, T, V).
template <class T>
concept TrainableModel = Layer<T> && std::is_invocable_r_v<Tensor, const T&, const Indices&>;

namespace detail {
/// A model of any type, reduced to what training needs of it.
struct TrainedModel {
  LanguageModel logits;
  std::function<void(Visitor&)> visit_members;

  static void visit(const TrainedModel& self, Visitor& v) { self.visit_members(v); }
};
}  // namespace detail

/// Trains a language model: batches -> loss -> backward -> clip -> step -> evaluate.
///
///   AdamW optimizer(named_parameters(model));
///   Trainer trainer(model, optimizer, source, {.steps = 2000, .clip = 1});
///   Run run("runs/first", trainer, {.checkpoint_every = 500});   // optional: logs, checkpoints, resuming
///   trainer.run();
///
/// The loss of a step is summed over all targets of its batches and divided once by their number. If the data
/// ends within a step, the step has fewer batches. A step is skipped, and changes neither weights nor
/// optimizer nor averages, if its loss or a gradient is not finite, if its loss is an outlier (see
/// `skip_loss_above_sigma`), or if it has no target. Evaluation measures the cross-entropy in nats per
/// target, without dropout and without the label smoothing, class weights and z-loss of training.
///
/// Ownership: the trainer holds references to the model and the optimizer, which must outlive it. The
/// averages start from the weights that the model has when the trainer is made.
/// Threads: only one thread may use a trainer at a time; results do not depend on `threads()`.
class FOVEA_API Trainer {
 public:
  /// Throws: ValueError for an option outside its range, or if a parameter of the optimizer is not one of the
  /// model's.
  template <TrainableModel Model>
  Trainer(const Model& model, Optimizer& optimizer, BatchSource source, TrainerOptions options = {})
      : Trainer(detail::TrainedModel{[&model](const Indices& ids) { return model(ids); },
                                     [&model](Visitor& v) { Model::visit(model, v); }},
                optimizer, std::move(source), std::move(options)) {}
  template <TrainableModel Model>
  Trainer(const Model&&, Optimizer&, BatchSource, TrainerOptions = {}) = delete;  // it would dangle
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Callbacks run in the order in which they were added. If one throws, those after it run too, so that logs
  /// miss nothing of a step that was taken; then `run` ends with the exception.
  /// `on_step`: after each step's update, while the gradients are still those of the step.
  void on_step(std::function<void(const StepReport&)> callback) { on_step_.push_back(std::move(callback)); }
  /// `on_evaluation`: after each evaluation that `run` makes.
  void on_evaluation(std::function<void(const EvaluationReport&)> callback) {
    on_evaluation_.push_back(std::move(callback));
  }
  /// `on_step_end`: when a step and the evaluation after it are done, which is the moment to save; and once
  /// more when training stops, with the reason.
  void on_step_end(std::function<void(std::optional<StopReason>)> callback) {
    on_step_end_.push_back(std::move(callback));
  }
  /// `on_failure`: when `run` ends with an exception while the weights are those of a whole step, which is
  /// the moment to save what was learned. What a callback throws then is ignored.
  void on_failure(std::function<void()> callback) { on_failure_.push_back(std::move(callback)); }
  /// Adds a condition that is asked before each step whether training stops. It is also asked between the
  /// batches of a step and of an evaluation: if it then says `interrupted`, the step is not taken, or the
  /// evaluation not reported. A later call of `run` begins with that evaluation.
  void stop_when(StopCondition condition) { stop_conditions_.push_back(std::move(condition)); }

  /// Trains until all steps are taken, the data ends or a condition stops it. If the reason is final, the
  /// model is then evaluated, unless it has just been. A later call continues from there.
  ///
  /// Throws: after ten skipped steps in a row NonFiniteError, or ValueError if the last one was skipped for
  /// another reason than a value that is not finite; what the source, the model and callbacks throw. If a
  /// step can't be taken, the status is that of the last whole step.
  StopReason run();

  /// Measures the loss on `TrainerOptions::evaluation`, with the averaged weights if there are any. It
  /// neither changes the status nor calls callbacks. Throws: ValueError if there is no evaluation or no
  /// target in it.
  EvaluationReport evaluate();

  /// Describes in lines of text what is to be trained: the number of parameters, how many of them decay, and
  /// the loss of the next batch beside ln V, the loss of a uniform guess. It draws no random numbers.
  std::string summary() const;

  const TrainerStatus& status() const { return status_; }
  /// Continues from a saved status; the tensors saved with it are restored by `load(trainer, state)`.
  void set_status(const TrainerStatus& status) { status_ = status; }

  /// The tensors of a checkpoint: "model.W", "optimizer.W.m" and, with `ema_decay`, "average.W.average".
  static void visit(const Trainer& self, Visitor& v);

 private:
  /// Sums over the batches of one step.
  struct BatchSums {
    std::int64_t batches = 0;
    std::int64_t tokens = 0;
    double loss = 0;
    double divisor = 0;  // the number of targets, or the sum of their class weights
  };

  Trainer(detail::TrainedModel model, Optimizer& optimizer, BatchSource source, TrainerOptions options);

  std::optional<Batch> next_batch();
  Tensor training_logits(const Indices& ids);
  std::optional<BatchSums> accumulate_gradients();
  std::string reason_to_skip(const BatchSums& sums, const StepReport& report);
  void update_weights(const StepReport& report);
  void check_skipped_in_row(const StepReport& last) const;
  StopReason train();
  std::optional<StopReason> train_step();
  std::optional<StopReason> learn(StepReport& report);
  std::optional<StopReason> end_step();
  std::optional<StopReason> reason_to_stop() const;
  bool is_interrupted() const;
  bool is_evaluation_due() const;
  bool evaluate_and_report();
  Evaluation measure(const EvaluationSource& batches);
  EvaluationReport report_of(const Evaluation& evaluation) const;

  detail::TrainedModel model_;
  Optimizer& optimizer_;
  BatchSource source_;
  TrainerOptions options_;
  std::optional<Ema> average_;
  TrainerStatus status_;
  bool updating_ = false;  // while the weights are neither those of one step nor of the next
  std::vector<std::function<void(const StepReport&)>> on_step_;
  std::vector<std::function<void(const EvaluationReport&)>> on_evaluation_;
  std::vector<std::function<void(std::optional<StopReason>)>> on_step_end_;
  std::vector<std::function<void()>> on_failure_;
  std::vector<StopCondition> stop_conditions_;
};

}  // namespace fovea
