#include "fovea/train/loop/run.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "train/io/json.h"
#include "train/loop/json_fields.h"
#include "train/loop/run_folder.h"
#include "train/loop/run_log.h"
#include "train/loop/trainer_status_json.h"

namespace fovea {
namespace {

// The keys of a checkpoint's metadata that resuming reads.
constexpr const char* status_key = "fovea.trainer";
constexpr const char* log_sizes_key = "fovea.log_sizes";

std::string value_of(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

detail::RunLog::Sizes log_sizes_in(const std::string& what, const Metadata& metadata) {
  try {
    const nlohmann::json json = detail::parse_json(value_of(metadata, log_sizes_key));
    detail::RunLog::Sizes sizes;
    for (const auto& [name, size] : json.items()) {
      sizes[name] = detail::whole_number<std::uint64_t>(json, name);
    }
    return sizes;
  } catch (const std::exception& error) {
    fail<FileError>("{} does not hold the sizes of the logs: {}", what, error.what());
  }
}

// Loads the trainer from a checkpoint, and returns the sizes that the logs had.
detail::RunLog::Sizes load_checkpoint(const std::filesystem::path& path, Trainer& trainer) {
  const std::string what = fmt::format("[Run] the checkpoint '{}'", path.string());
  try {
    const SafetensorsFile file = load_safetensors(path);
    const TrainerStatus status = detail::trainer_status_from_json(what, value_of(file.metadata, status_key));
    detail::RunLog::Sizes log_sizes = log_sizes_in(what, file.metadata);
    load(trainer, file.state);
    trainer.set_status(status);
    return log_sizes;
  } catch (const LoadError& error) {
    // The report has lines, so the text is not made by `fail`, which makes one of them.
    throw FileError(fmt::format("{} belongs to another model, optimizer or ema_decay: {}",
                                detail::printable(what), to_string(error.report)));
  }
}

}  // namespace

Run::Run(const std::filesystem::path& folder, Trainer& trainer, RunOptions options)
    : trainer_(trainer), options_(std::move(options)) {
  check_options();
  if (options_.resume && !latest_checkpoint(folder)) {
    fail<FileError>("[Run] there is no checkpoint in '{}' to resume from", folder.string());
  }
  folder_ = std::make_unique<detail::RunFolder>(folder, options_.keep_checkpoints);
  if (options_.resume) {
    resume();
  } else {
    start();
  }
  folder_->sync();
  listen();
}

Run::~Run() = default;

void Run::check_options() const {
  if (options_.checkpoint_every < 0) {
    fail<ValueError>("[Run] checkpoint_every is {}: it must be 0 or more", options_.checkpoint_every);
  }
  if (options_.keep_checkpoints < 1) {
    fail<ValueError>("[Run] keep_checkpoints is {}: a run needs at least 1 checkpoint to be resumed from",
                     options_.keep_checkpoints);
  }
  for (const char* key : {status_key, log_sizes_key}) {
    if (options_.metadata.contains(key)) fail<ValueError>("[Run] the metadata key \"{}\" is reserved", key);
  }
}

void Run::start() {
  const std::filesystem::path& folder = folder_->path();
  if (latest_checkpoint(folder) || detail::RunLog::exists(folder)) {
    fail<FileError>("[Run] '{}' has a run already: set .resume to continue it, or choose another folder",
                    folder.string());
  }
  // The checkpoint of step 0 comes before the logs: whatever is there when the run is killed, it can be
  // resumed.
  save();
  log_ = std::make_unique<detail::RunLog>(folder, detail::RunLog::Sizes{});
}

void Run::resume() {
  const std::vector<std::filesystem::path> checkpoints = detail::numbered_checkpoints(folder_->path());
  detail::RunLog::Sizes log_sizes;
  try {
    log_sizes = load_checkpoint(checkpoints.back(), trainer_);
  } catch (const FileError& error) {
    if (checkpoints.size() < 2) throw;
    fail<FileError>("{}. The checkpoint before it is '{}': remove the damaged one to resume from there",
                    error.what(), checkpoints[checkpoints.size() - 2].filename().string());
  }
  saved_ = true;
  folder_->remove_old_checkpoints();
  log_ = std::make_unique<detail::RunLog>(folder_->path(), log_sizes);
}

void Run::listen() {
  trainer_.on_step([this](const StepReport& report) {
    saved_ = false;
    log_->step(report, trainer_.status().tokens);
  });
  trainer_.on_evaluation([this](const EvaluationReport& report) {
    saved_ = false;
    log_->evaluation(report);
    if (report.best) folder_->save_best(state(trainer_), metadata());
  });
  trainer_.on_step_end([this](std::optional<StopReason> stop) {
    const std::int64_t every = options_.checkpoint_every;
    const bool is_due = every > 0 && trainer_.status().step % every == 0;
    if ((stop || is_due) && !saved_) save();
    if (stop) log_->flush();
  });
}

// The logs reach the disk before the checkpoint that records their sizes.
Metadata Run::metadata() {
  detail::RunLog::Sizes log_sizes;
  if (log_) {
    log_->sync();
    log_sizes = log_->sizes();
  }
  Metadata metadata = options_.metadata;
  metadata[status_key] = detail::to_json(trainer_.status());
  metadata[log_sizes_key] = nlohmann::json(log_sizes).dump();
  return metadata;
}

void Run::save() {
  folder_->save(trainer_.status().step, state(trainer_), metadata());
  saved_ = true;
}

}  // namespace fovea
