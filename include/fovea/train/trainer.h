#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/autograd/ops.h"
#include "fovea/autograd/rng.h"
#include "fovea/autograd/tensor.h"
#include "fovea/export.h"
#include "fovea/layers/visit.h"
#include "fovea/train/batch.h"
#include "fovea/train/optimizer.h"
#include "fovea/train/safetensors.h"

namespace fovea {

/// The batches of a run, in order: number `index`, counted from 0, or nothing where the data ends. What is
/// random about it is drawn from `rng` alone, so that a resumed run sees the same batches.
using BatchSource = std::function<std::optional<Batch>(std::int64_t index, Rng& rng)>;

/// The batches of an evaluation, the same each time.
using EvaluationSource = std::function<std::optional<Batch>(std::int64_t index)>;

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
}  // namespace fovea
