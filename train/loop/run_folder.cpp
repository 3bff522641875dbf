#include "fovea/train/loop/run_folder.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/train/loop/checkpoints.h"
#include "train/io/file.h"
#include "train/loop/run_log.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using detail::Descriptor;

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail_to_make(const fs::path& path, const std::string& why) {
  fail<FileError>("[RunFolder] can't make the folder '{}': {}", path.string(), why);
}

void make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_to_make(path, error.message());
}

// The folder, open and locked; nothing if another program has its lock.
std::unique_ptr<Descriptor> locked(const fs::path& path) {
  auto folder = std::make_unique<Descriptor>(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder->is_open())
    fail<FileError>("[RunFolder] can't open the folder '{}': {}", path.string(), reason(errno));
  // Where a file system has no locks, the error is another one, and the run works unprotected.
  if (::flock(folder->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return nullptr;
  return folder;
}

// Makes a folder that is new. Returns false if something is there already.
bool make_new(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) fail_to_make(path, reason(errno));
  return false;
}

}  // namespace

RunFolder::RunFolder(fs::path path, std::unique_ptr<Descriptor> lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}
RunFolder::RunFolder(RunFolder&&) noexcept = default;
RunFolder& RunFolder::operator=(RunFolder&&) noexcept = default;
RunFolder::~RunFolder() = default;

RunFolder RunFolder::make(const fs::path& path) {
  make_folders(path);
  RunFolder folder = open(path);
  detail::sync_folder(parent_of(path));
  return folder;
}

RunFolder RunFolder::make_numbered(const fs::path& path) {
  make_folders(parent_of(path));
  fs::path numbered = path;
  for (int number = 2;; ++number) {
    // A program that was told to use this very folder may lock it first, or even be done with it.
    if (make_new(numbered)) {
      std::unique_ptr<Descriptor> lock = locked(numbered);
      detail::sync_folder(parent_of(path));
      if (lock && fs::is_empty(numbered)) return {std::move(numbered), std::move(lock)};
    }
    numbered = path;
    numbered += fmt::format("-{}", number);
  }
}

RunFolder RunFolder::open(const fs::path& path) {
  std::unique_ptr<Descriptor> lock = locked(path);
  if (!lock) {
    fail<FileError>(
        "[RunFolder] another run is being written in '{}': wait until it ends, or choose another folder",
        path.string());
  }
  return {path, std::move(lock)};
}

bool RunFolder::has_run() const { return latest_checkpoint(path_) || detail::RunLog::exists(path_); }

void RunFolder::write(const std::string& name, std::string_view text) const {
  detail::AtomicFile file("RunFolder", path_ / name);
  file.write(text);
  file.commit();
}

void RunFolder::sync() const {
  // An error is ignored, because some file systems cannot flush folders.
  ::fsync(lock_->get());
}

}  // namespace fovea
