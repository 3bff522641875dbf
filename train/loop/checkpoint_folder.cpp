#include "train/loop/checkpoint_folder.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "train/io/file.h"

namespace fovea::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-", suffix = ".safetensors";
constexpr std::size_t min_digits = 8;
constexpr const char* best_name = "best.safetensors";

fs::path checkpoints_of(const fs::path& run) { return run / "checkpoints"; }

fs::path checkpoint_name(std::int64_t step) {
  return fmt::format("{}{:0{}}{}", prefix, step, min_digits, suffix);
}

// The step in the name of a checkpoint; -1 for any other name.
std::int64_t step_in(const std::string& name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return -1;
  const std::string_view number =
      std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  return number.size() < min_digits ? -1 : detail::whole_number(number).value_or(-1);
}

}  // namespace

std::vector<fs::path> numbered_checkpoints(const fs::path& run) {
  const fs::path folder = checkpoints_of(run);
  check_own_folder("Run", folder);
  std::map<std::int64_t, fs::path> by_step;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::int64_t step = step_in(entry->path().filename().string());
    if (step >= 0) by_step.emplace(step, entry->path());
  }
  std::vector<fs::path> paths;
  paths.reserve(by_step.size());
  for (auto& [step, path] : by_step) {
    check_own_file("Run", path);
    paths.push_back(std::move(path));
  }
  return paths;
}

fs::path best_checkpoint_path(const fs::path& run) {
  const fs::path folder = checkpoints_of(run);
  check_own_folder("Run", folder);
  check_own_file("Run", folder / best_name);
  return folder / best_name;
}

CheckpointFolder::CheckpointFolder(fs::path run, std::int64_t keep) : run_(std::move(run)), keep_(keep) {
  const fs::path folder = checkpoints_of(run_);
  check_own_folder("Run", folder);
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) fail<FileError>("[Run] can't make the folder '{}': {}", folder.string(), error.message());
  sweep_temporary_files(folder);
}

void CheckpointFolder::remove_old() const {
  const std::vector<fs::path> paths = numbered_checkpoints(run_);
  const auto too_many = static_cast<std::int64_t>(paths.size()) - keep_;
  for (std::int64_t i = 0; i < too_many; ++i) {
    const fs::path& path = paths[static_cast<std::size_t>(i)];
    std::error_code error;
    fs::remove(path, error);
    if (error) fail<FileError>("[Run] can't remove '{}': {}", path.string(), error.message());
  }
}

void CheckpointFolder::save(std::int64_t step, const State& state, const Metadata& metadata) const {
  save_safetensors(checkpoints_of(run_) / checkpoint_name(step), state, metadata);
  remove_old();
}

void CheckpointFolder::save_best(const State& state, const Metadata& metadata) const {
  save_safetensors(best_checkpoint_path(run_), state, metadata);
}

}  // namespace fovea::detail
