#include <filesystem>
#include <string>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/train/loop/run_folder.h"
#include "fovea/train/loop/trainer.h"
#include "train/loop/checkpoint_folder.h"
#include "train/loop/run_log.h"
#include "train/loop/trainer_state.h"

// How a Trainer saves its run and takes it up again.
namespace fovea {
namespace {

/// The tensors of a checkpoint.
struct RunTensors {
  const detail::TrainedModel& model;
  const Optimizer& optimizer;
  const std::optional<Ema>& average;

  static void visit(const RunTensors& self, Visitor& v) {
    v("model", self.model);
    v("optimizer", self.optimizer);
    v("average", self.average);
  }
};

}  // namespace

State Trainer::tensors() const { return state(RunTensors{model_, optimizer_, average_}); }

// Logs are on the disk before a checkpoint says how long they are.
Metadata Trainer::metadata() {
  if (log_) {
    log_->sync();
    state_->log_sizes = log_->sizes();
  }
  Metadata metadata = options_.metadata;
  metadata[detail::trainer_state_key] = to_json(*state_);
  return metadata;
}

void Trainer::save() {
  if (folder_) folder_->save(state_->step, tensors(), metadata());
  saved_ = true;
}

void Trainer::open_folder() {
  if (options_.folder.empty()) return;
  auto folder = std::make_unique<detail::CheckpointFolder>(options_.folder, options_.keep);
  if (!in_folder_ && (latest_checkpoint(options_.folder) || detail::RunLog::exists(options_.folder))) {
    fail<FileError>("[Trainer::run] '{}' has a run already: resume it, or take another folder",
                    options_.folder.string());
  }
  folder_ = std::move(folder);
  // So that a run that is killed before its first checkpoint can be resumed too.
  if (!in_folder_) save();
  in_folder_ = true;
  log_ = std::make_unique<detail::RunLog>(options_.folder, state_->log_sizes);
  folder_->sync();
}

void Trainer::resume() {
  if (options_.folder.empty()) fail<ValueError>("[Trainer::resume] TrainerOptions::folder is empty");
  const std::vector<std::filesystem::path> paths = detail::checkpoints_in(options_.folder);
  if (paths.empty()) {
    fail<FileError>("[Trainer::resume] there is no checkpoint in '{}'", options_.folder.string());
  }
  const std::string path = paths.back().string();
  try {
    const SafetensorsFile file = load_safetensors(paths.back());
    const auto found = file.metadata.find(detail::trainer_state_key);
    detail::TrainerState state = detail::trainer_state_from_json(
        fmt::format("[Trainer::resume] '{}'", path), found == file.metadata.end() ? "" : found->second);
    RunTensors tensors{model_, optimizer_, average_};
    load(tensors, file.state);
    *state_ = std::move(state);
  } catch (const LoadError& error) {
    fail<FileError>("[Trainer::resume] '{}' is of another model, optimizer or average: {}", path,
                    to_string(error.report));
  } catch (const FileError& error) {
    if (paths.size() < 2) throw;
    fail<FileError>("{}. The checkpoint before it is '{}': to resume from there, remove this one",
                    error.what(), paths[paths.size() - 2].filename().string());
  }
  in_folder_ = saved_ = true;
}

}  // namespace fovea
