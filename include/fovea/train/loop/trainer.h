#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/state.h"
#include "fovea/layers/visit.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/io/safetensors.h"
#include "fovea/train/loop/evaluate.h"
#include "fovea/train/optimizers/ema.h"
#include "fovea/train/optimizers/optimizer.h"

namespace fovea {

/// The batches of a run, in order: number `index`, counted from 0, or nothing where the data ends. What is
/// random about it is drawn from `rng` alone, so that a resumed run sees the same batches.
using BatchSource = std::function<std::optional<Batch>(std::int64_t index, Rng& rng)>;

struct TrainerOptions {
  std::int64_t steps = 1000;
  /// The learning rate of a step, counted from 0: a Schedule. Empty: as the optimizer has it.
  std::function<double(std::int64_t step)> learning_rate = {};
  std::int64_t accumulate = 1;                            ///< batches in a step
  double clip = std::numeric_limits<double>::infinity();  ///< the limit of the gradients' norm
  double average = 0;  ///< decay of an Ema of the weights, which is then what is evaluated; 0: none
  /// A step is skipped if its loss is above mean + this times deviation of recent ones; 0: never.
  double outlier = 0;
  CrossEntropyOptions loss{.ignore_index = ignored_target};
  std::uint64_t seed = 1;  ///< of batches and dropout

  EvaluationSource evaluation = {};
  std::int64_t evaluate_every = 0;  ///< steps; 0: at the end alone
  std::int64_t patience = 0;        ///< stop after so many evaluations without a lower loss; 0: never

  std::optional<double> seconds = {};       ///< stop when this has passed, in this process
  std::optional<std::int64_t> tokens = {};  ///< stop when so many targets have been learned from

  /// Where log.jsonl, log.csv, TensorBoard's events and checkpoints/ are written. Empty: nowhere.
  std::filesystem::path folder = {};
  std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end alone
  std::int64_t keep = 2;              ///< how many of the last checkpoints stay, besides the best
  Metadata metadata = {};             ///< what else a checkpoint says: configuration, tokenizer

  std::function<bool()> stop = {};  ///< asked after each step: true ends the run, as an Interrupt does
};

/// What happened in a step.
struct StepReport {
  std::int64_t step = 0;    ///< how many there have been, with this one
  std::int64_t steps = 0;   ///< how many there will be
  double loss = 0;          ///< mean over the step's targets
  std::int64_t tokens = 0;  ///< targets in this step
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  std::string skipped = {};  ///< why the weights were left as they were, or empty
};

struct EvaluationReport {
  std::int64_t step = 0;
  double loss = 0;  ///< mean over all targets of the evaluation
  std::int64_t tokens = 0;
  bool best = false;  ///< no earlier one was lower
};

/// Why a run ended.
enum class Ending : std::uint8_t {
  finished,
  data_ended,
  early_stop,
  out_of_time,
  out_of_tokens,
  interrupted
};

struct TrainingResult {
  Ending ending = Ending::finished;
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double seconds = 0;                          ///< in this process
  double loss = 0;                             ///< of the last step
  std::optional<double> evaluation = {};       ///< the last one
  std::optional<double> best_evaluation = {};  ///< the lowest
  std::int64_t skipped_non_finite = 0;
  std::int64_t skipped_outliers = 0;
};

namespace detail {
class CheckpointFolder;
class RunLog;
struct TrainerState;

// A model of any type, by what training needs of it.
struct TrainedModel {
  std::function<Tensor(const Indices&)> logits;
  std::function<void(Visitor&)> visit_members;

  static void visit(const TrainedModel& self, Visitor& v) { self.visit_members(v); }
};
}  // namespace detail

/// Trains a language model: batches -> loss -> backward -> clip -> step -> log -> evaluate -> checkpoint.
///
///   AdamW optimizer(named_parameters(model));
///   Trainer trainer(model, optimizer, source, {.steps = 2000, .folder = "runs/first"});
///   fmt::print("{}\n", trainer.summary());
///   const TrainingResult result = trainer.run();
///
/// A step's loss is the sum over all targets of its batches, divided once by their number; if the data end
/// within it, it has fewer batches. A step is skipped, and leaves weights, optimizer and averages as they
/// are, if its loss or a gradient is not finite, its loss is an outlier, or it has no target. Evaluation is
/// cross-entropy in nats per target, without the smoothing, class weights and z-loss of training.
///
/// A run that is stopped at any instant and resumed gives the same weights, checkpoints and logs, bit by bit,
/// as one that never stopped, if model, optimizer, source and options are made as before.
///
/// Ownership: it holds references to the model and the optimizer; the averages start from the weights that
/// the model has when it is made. Threads: one thread uses a trainer at a time; results do not depend on
/// `threads()`.
class FOVEA_API Trainer {
 public:
  /// The model: a Layer with `Tensor operator()(const Indices& ids) const`, logits (B, T, V) for ids (B, T).
  /// Throws: ValueError for options that make no sense, or a parameter of the optimizer that is not one of
  /// the model's.
  template <Layer Model>
  requires std::is_invocable_r_v<Tensor, const Model&, const Indices&> Trainer(const Model& model,
                                                                               Optimizer& optimizer,
                                                                               BatchSource source,
                                                                               TrainerOptions options = {})
      : Trainer(detail::TrainedModel{[&model](const Indices& ids) { return model(ids); },
                                     [&model](Visitor& v) { Model::visit(model, v); }},
                optimizer, std::move(source), std::move(options)) {}
  template <Layer Model>
  Trainer(const Model&& model, Optimizer& optimizer, BatchSource source,
          TrainerOptions options = {}) = delete;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Called after each step and each evaluation, in the order in which they were added. Gradients are still
  /// those of the step.
  void on_step(std::function<void(const StepReport&)> callback);
  void on_evaluation(std::function<void(const EvaluationReport&)> callback);

  /// What is to be trained, in lines of text: parameters, tied ones counted once; how many decay; the loss of
  /// the next batch beside ln V, which a model has that knows nothing. Draws of the run stay as they are.
  std::string summary() const;

  /// Takes up the run in the folder where its latest checkpoint was saved; `run` goes on from there.
  /// Throws: FileError, with the path, if there is no checkpoint, or it is damaged or of another model or
  /// optimizer; ValueError if there is no folder. Nothing has changed then.
  void resume();

  /// Trains until the run ends. A later call goes on, if it was stopped.
  ///
  /// Throws: FileError if the folder has a run that is not resumed, or a file can't be written: checkpoints
  /// are as they were. NonFiniteError if ten steps in a row are skipped, the last because something is not
  /// finite, ValueError if it is for another reason. What the source, the model and callbacks throw.
  TrainingResult run();

  /// The loss on `TrainerOptions::evaluation`, by averaged weights if there are any.
  /// Throws: ValueError if there is no evaluation, or no target in it.
  EvaluationReport evaluate();

  /// How many steps there have been.
  std::int64_t step() const;

 private:
  // The batches of one step.
  struct Window {
    std::int64_t batches = 0;
    std::int64_t tokens = 0;
    double loss_sum = 0;
    double divisor = 0;

    double loss() const { return divisor > 0 ? loss_sum / divisor : 0; }
  };

  Trainer(detail::TrainedModel model, Optimizer& optimizer, BatchSource source, TrainerOptions options);

  using Clock = std::chrono::steady_clock;

  std::optional<Batch> next_batch();
  Tensor training_logits(const Indices& ids);
  Window accumulate_gradients();
  std::string reason_to_skip(const Window& window, double& gradient_norm);
  void check_skipped_in_row(const StepReport& last) const;
  bool train_step();

  void evaluate_and_keep();

  double seconds() const;
  bool is_due(std::int64_t every) const;
  std::optional<Ending> ending() const;
  std::optional<Ending> stop() const;
  Ending train();
  TrainingResult finish(Ending ending);

  State tensors() const;
  Metadata metadata();
  void save();
  void open_folder();

  detail::TrainedModel model_;
  Optimizer& optimizer_;
  BatchSource source_;
  TrainerOptions options_;
  std::vector<std::function<void(const StepReport&)>> on_step_;
  std::vector<std::function<void(const EvaluationReport&)>> on_evaluation_;
  std::optional<Ema> average_;
  std::unique_ptr<detail::TrainerState> state_;  // what a checkpoint has besides tensors
  bool saved_ = false;                           // whether there is a checkpoint of the state
  bool in_folder_ = false;                       // whether the run in the folder is this one
  std::unique_ptr<detail::CheckpointFolder> folder_;
  std::unique_ptr<detail::RunLog> log_;  // these two only while it runs
  Clock::time_point start_ = Clock::now();
};

}  // namespace fovea
