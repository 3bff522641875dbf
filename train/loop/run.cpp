#include "fovea/train/loop/run.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

#include "autograd/base/build.h"
#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "train/io/json.h"
#include "train/loop/checkpoint_folder.h"
#include "train/loop/json_fields.h"
#include "train/loop/run_log.h"
#include "train/loop/trainer_status_json.h"

namespace fovea {
namespace {

// The keys of a checkpoint's metadata that resuming reads.
constexpr const char* status_key = "fovea.trainer";
constexpr const char* log_ends_key = "fovea.logs";
constexpr const char* build_key = "fovea.build";

std::string value_of(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

detail::LogEnd log_end(const nlohmann::json& json) {
  detail::LogEnd end{.size = detail::whole_number<std::uint64_t>(json, "size")};
  if (json.contains("crc32")) end.crc32 = detail::whole_number<std::uint32_t>(json, "crc32");
  return end;
}

detail::RunLog::Ends log_ends_in(const std::string& what, const Metadata& metadata) {
  try {
    const nlohmann::json json = detail::parse_json(value_of(metadata, log_ends_key));
    detail::RunLog::Ends ends;
    for (const auto& [name, end] : json.items()) ends[name] = log_end(end);
    return ends;
  } catch (const std::exception& error) {
    fail<FileError>("{} does not say where the logs end: {}", what, error.what());
  }
}

std::string to_json(const detail::RunLog::Ends& ends) {
  nlohmann::json json;
  for (const auto& [name, end] : ends) {
    json[name] = {{"size", end.size}};
    if (end.crc32) json[name]["crc32"] = *end.crc32;
  }
  return json.dump();
}

// What a checkpoint holds besides the trainer.
struct Loaded {
  detail::RunLog::Ends log_ends;
  std::string build;
};

// Loads the trainer from a checkpoint.
Loaded load_checkpoint(const std::filesystem::path& path, Trainer& trainer) {
  const std::string what = fmt::format("[Run] the checkpoint '{}'", path.string());
  try {
    const SafetensorsFile file = load_safetensors(path);
    const TrainerStatus status = detail::trainer_status_from_json(what, value_of(file.metadata, status_key));
    detail::RunLog::Ends log_ends = log_ends_in(what, file.metadata);
    load(trainer, file.state);
    trainer.set_status(status);
    return {std::move(log_ends), value_of(file.metadata, build_key)};
  } catch (const LoadError& error) {
    // The report has lines, so the text is not made by `fail`, which makes one of them.
    throw FileError(fmt::format("{} belongs to another model, optimizer or ema_decay: {}",
                                detail::printable(what), to_string(error.report)));
  }
}

// What a user should know of the build that saved a checkpoint; nothing if it is this one.
std::string notice_of_build(const std::string& build) {
  const std::string here = detail::build_identity();
  if (build == here) return "";
  return fmt::format(
      "note: another build has trained this run until now ({}; this is {}), so that it ends with other bits "
      "than "
      "one that never stopped",
      build.empty() ? "it is not named" : detail::printable(build, 120), here);
}

void check_options(const RunOptions& options) {
  if (options.checkpoint_every < 0) {
    fail<ValueError>("[Run] checkpoint_every is {}: it must be 0 or more", options.checkpoint_every);
  }
  if (options.keep_checkpoints < 1) {
    fail<ValueError>("[Run] keep_checkpoints is {}: a run needs at least 1 checkpoint to be resumed from",
                     options.keep_checkpoints);
  }
  for (const char* key : {status_key, log_ends_key, build_key}) {
    if (options.metadata.contains(key)) fail<ValueError>("[Run] the metadata key \"{}\" is reserved", key);
  }
}

RunFolder open_folder(const std::filesystem::path& path, const RunOptions& options) {
  check_options(options);
  return options.resume ? RunFolder::open(path) : RunFolder::make(path);
}

}  // namespace

Run::Run(const std::filesystem::path& folder, Trainer& trainer, const RunOptions& options)
    : Run(open_folder(folder, options), trainer, options) {}

Run::Run(RunFolder folder, Trainer& trainer, RunOptions options)
    : trainer_(trainer), options_(std::move(options)), folder_(std::move(folder)) {
  check_options(options_);
  if (options_.resume) {
    resume();
  } else {
    start();
  }
  folder_.sync();
  listen();
}

Run::~Run() = default;

void Run::start() {
  const std::filesystem::path& folder = folder_.path();
  if (folder_.has_run()) {
    fail<FileError>("[Run] '{}' has a run already: set .resume to continue it, or choose another folder",
                    folder.string());
  }
  if (options_.checkpoints) {
    checkpoints_ = std::make_unique<detail::CheckpointFolder>(folder, options_.keep_checkpoints);
  }
  // The checkpoint of step 0 comes before the logs: whatever is there when the run is killed, it can be
  // resumed.
  save();
  log_ = std::make_unique<detail::RunLog>(folder, detail::RunLog::Ends{});
}

void Run::resume() {
  const std::filesystem::path& folder = folder_.path();
  const std::vector<std::filesystem::path> checkpoints = detail::numbered_checkpoints(folder);
  if (checkpoints.empty())
    fail<FileError>("[Run] there is no checkpoint in '{}' to resume from", folder.string());
  Loaded loaded;
  try {
    loaded = load_checkpoint(checkpoints.back(), trainer_);
  } catch (const FileError& error) {
    if (checkpoints.size() < 2) throw;
    fail<FileError>("{}. The checkpoint before it is '{}': remove the damaged one to resume from there",
                    error.what(), checkpoints[checkpoints.size() - 2].filename().string());
  }
  saved_ = true;
  notice_ = notice_of_build(loaded.build);
  checkpoints_ = std::make_unique<detail::CheckpointFolder>(folder, options_.keep_checkpoints);
  checkpoints_->remove_old();
  log_ = std::make_unique<detail::RunLog>(folder, loaded.log_ends);
}

void Run::listen() {
  trainer_.on_step([this](const StepReport& report) {
    saved_ = false;
    log_->step(report, trainer_.status().tokens);
  });
  trainer_.on_evaluation([this](const EvaluationReport& report) {
    saved_ = false;
    log_->evaluation(report);
    if (report.best && options_.checkpoints) checkpoints_->save_best(state(trainer_), metadata());
  });
  trainer_.on_step_end([this](std::optional<StopReason> stop) {
    const std::int64_t every = options_.checkpoint_every;
    const bool is_due = every > 0 && trainer_.status().step % every == 0;
    if ((stop || is_due) && !saved_) save();
    if (stop) log_->flush();
  });
  trainer_.on_failure([this] {
    if (!saved_) save();
    log_->flush();
  });
}

// The logs reach the disk before the checkpoint that records their ends.
Metadata Run::metadata() {
  detail::RunLog::Ends log_ends;
  if (log_) {
    log_->sync();
    log_ends = log_->ends();
  }
  Metadata metadata = options_.metadata;
  metadata[status_key] = detail::to_json(trainer_.status());
  metadata[build_key] = detail::build_identity();
  metadata[log_ends_key] = to_json(log_ends);
  return metadata;
}

void Run::save() {
  if (!options_.checkpoints) return;
  checkpoints_->save(trainer_.status().step, state(trainer_), metadata());
  saved_ = true;
}

}  // namespace fovea
