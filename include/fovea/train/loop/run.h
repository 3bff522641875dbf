#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "fovea/autograd/base/export.h"
#include "fovea/train/io/safetensors.h"
#include "fovea/train/loop/checkpoints.h"
#include "fovea/train/loop/run_folder.h"
#include "fovea/train/loop/trainer.h"

namespace fovea {

namespace detail {
class CheckpointFolder;
class RunLog;
}  // namespace detail

struct RunOptions {
  bool resume = false;                ///< continue from the folder's latest checkpoint
  bool checkpoints = true;            ///< false: only logs are written, and the run can't be resumed
  std::int64_t checkpoint_every = 0;  ///< steps between checkpoints; 0: only when training stops
  std::int64_t keep_checkpoints = 2;  ///< how many of the latest checkpoints are kept, besides the best
  Metadata metadata = {};  ///< saved in every checkpoint, such as the configuration and the tokenizer
};

/// The folder of a training run. A Run listens to a Trainer and writes
///
///   checkpoints/step-00001000.safetensors   the latest checkpoints
///   checkpoints/best.safetensors            the checkpoint with the lowest evaluation loss
///   log.jsonl                               a line for each step and each evaluation
///   events.out.tfevents.fovea               the same for TensorBoard
///
///   Trainer trainer(model, optimizer, source, {.steps = 2000});
///   Run run(folder, trainer, {.resume = latest_checkpoint(folder).has_value(), .checkpoint_every = 500});
///   trainer.run();
///
/// If a run is stopped or killed at any instant and then resumed, with model, optimizer, source and options
/// made as before, its weights, checkpoints and log.jsonl are bit by bit those of a run that was never
/// stopped. That holds for one build of Fovea, which checkpoints name; see `notice`.
///
/// The folder may be somebody else's: nothing in it is followed out of it. A link, a pipe or a folder in
/// place of one of these files is an error.
///
/// Checkpoints appear atomically: a crash or a full disk leaves either the old file or the new one. Logs are
/// flushed every second, and to the disk before each checkpoint.
///
/// Ownership: the trainer must outlive the run, and must not train after the run is gone. The folder is
/// locked while the run lives. Threads: as the trainer.
class FOVEA_API Run {
 public:
  /// Opens the folder, restores the trainer if `resume` is set, and adds itself to the trainer's callbacks.
  ///
  /// Throws: ValueError for an option outside its range. FileError, with the path, if the folder cannot be
  /// written, if another Run has it, if it holds a run and `resume` is not set, or, with `resume`, if there
  /// is no checkpoint, if the latest is damaged or belongs to another model or optimizer (the trainer is then
  /// unchanged), or if a log is shorter than it was at that checkpoint.
  Run(const std::filesystem::path& folder, Trainer& trainer, const RunOptions& options = {});
  /// The same in a folder that is locked already, such as one to which the settings of the run were written.
  Run(RunFolder folder, Trainer& trainer, RunOptions options = {});
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  const RunFolder& folder() const { return folder_; }
  /// A line that the user should read before a resumed run goes on: that another build of Fovea trained it
  /// until then, as another compiler or another processor makes one. Empty if there is nothing to say.
  const std::string& notice() const { return notice_; }

 private:
  void start();
  void resume();
  void listen();
  Metadata metadata();
  void save();

  Trainer& trainer_;
  RunOptions options_;
  RunFolder folder_;
  std::unique_ptr<detail::CheckpointFolder> checkpoints_;
  std::unique_ptr<detail::RunLog> log_;
  std::string notice_;
  bool saved_ = false;  // whether a checkpoint holds the trainer's present state
};

}  // namespace fovea
