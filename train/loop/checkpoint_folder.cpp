#include "train/loop/checkpoint_folder.h"

#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"

namespace fovea::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-", suffix = ".safetensors";
constexpr std::size_t digits = 8;  // at least

fs::path checkpoints_of(const fs::path& folder) { return folder / "checkpoints"; }

fs::path name_of(std::int64_t step) { return fmt::format("{}{:0{}}{}", prefix, step, digits, suffix); }

// The step in a checkpoint's name, or -1.
std::int64_t step_of(const std::string& name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return -1;
  const std::string_view number =
      std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  return number.size() < digits ? -1 : detail::whole_number(number).value_or(-1);
}

}  // namespace

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::map<std::int64_t, fs::path> by_step;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints_of(folder), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::int64_t step = step_of(entry->path().filename().string());
    if (step >= 0) by_step.emplace(step, entry->path());
  }
  std::vector<fs::path> paths;
  paths.reserve(by_step.size());
  for (auto& [step, path] : by_step) paths.push_back(std::move(path));
  return paths;
}

fs::path best_checkpoint_path(const fs::path& folder) { return checkpoints_of(folder) / "best.safetensors"; }

CheckpointFolder::CheckpointFolder(fs::path folder, std::int64_t keep)
    : path_(std::move(folder)), keep_(keep) {
  std::error_code error;
  fs::create_directories(checkpoints_of(path_), error);
  if (!error) lock_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.is_open()) {
    fail<FileError>("[Trainer::run] can't make the folder '{}': {}", path_.string(),
                    error ? error.message() : std::generic_category().message(errno));
  }
  // Some file systems have no locks; then there is no such check.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fail<FileError>("[Trainer::run] another program trains in '{}' at this time", path_.string());
  }
  // What a killed trainer has left.
  sweep_temporary_files(checkpoints_of(path_));
  remove_old();
}

void CheckpointFolder::remove_old() const {
  const std::vector<fs::path> paths = checkpoints_in(path_);
  const auto too_many = static_cast<std::int64_t>(paths.size()) - keep_;
  for (std::int64_t i = 0; i < too_many; ++i) {
    const fs::path& path = paths[static_cast<std::size_t>(i)];
    std::error_code error;
    fs::remove(path, error);
    if (error) fail<FileError>("[Trainer::run] can't remove '{}': {}", path.string(), error.message());
  }
}

void CheckpointFolder::save(std::int64_t step, const State& state, const Metadata& metadata) const {
  save_safetensors(checkpoints_of(path_) / name_of(step), state, metadata);
  remove_old();
}

void CheckpointFolder::save_best(const State& state, const Metadata& metadata) const {
  save_safetensors(best_checkpoint_path(path_), state, metadata);
}

void CheckpointFolder::sync() const {
  // Some file systems have no flush of folders.
  ::fsync(lock_.get());
}

}  // namespace fovea::detail
