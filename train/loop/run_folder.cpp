#include "train/loop/run_folder.h"

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
constexpr std::size_t min_digits = 8;

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

std::vector<fs::path> numbered_checkpoints(const fs::path& folder) {
  std::map<std::int64_t, fs::path> by_step;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints_of(folder), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::int64_t step = step_in(entry->path().filename().string());
    if (step >= 0) by_step.emplace(step, entry->path());
  }
  std::vector<fs::path> paths;
  paths.reserve(by_step.size());
  for (auto& [step, path] : by_step) paths.push_back(std::move(path));
  return paths;
}

fs::path best_checkpoint_path(const fs::path& folder) { return checkpoints_of(folder) / "best.safetensors"; }

RunFolder::RunFolder(fs::path folder, std::int64_t keep_checkpoints)
    : path_(std::move(folder)), keep_checkpoints_(keep_checkpoints) {
  std::error_code error;
  fs::create_directories(checkpoints_of(path_), error);
  if (!error) lock_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.is_open()) {
    fail<FileError>("[Run] can't make the folder '{}': {}", path_.string(),
                    error ? error.message() : std::generic_category().message(errno));
  }
  // Some file systems have no locks. A run there is not protected, but works.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fail<FileError>("[Run] another Run writes in '{}': wait until it ends, or choose another folder",
                    path_.string());
  }
  sweep_temporary_files(checkpoints_of(path_));
}

void RunFolder::remove_old_checkpoints() const {
  const std::vector<fs::path> paths = numbered_checkpoints(path_);
  const auto too_many = static_cast<std::int64_t>(paths.size()) - keep_checkpoints_;
  for (std::int64_t i = 0; i < too_many; ++i) {
    const fs::path& path = paths[static_cast<std::size_t>(i)];
    std::error_code error;
    fs::remove(path, error);
    if (error) fail<FileError>("[Run] can't remove '{}': {}", path.string(), error.message());
  }
}

void RunFolder::save(std::int64_t step, const State& state, const Metadata& metadata) const {
  save_safetensors(checkpoints_of(path_) / checkpoint_name(step), state, metadata);
  remove_old_checkpoints();
}

void RunFolder::save_best(const State& state, const Metadata& metadata) const {
  save_safetensors(best_checkpoint_path(path_), state, metadata);
}

void RunFolder::sync() const {
  // An error is ignored, because some file systems cannot flush folders.
  ::fsync(lock_.get());
}

}  // namespace fovea::detail
