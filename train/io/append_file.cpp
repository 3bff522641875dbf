#include "train/io/append_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "autograd/base/fail.h"

namespace fovea::detail {

AppendFile::AppendFile(std::filesystem::path path, std::uint64_t size) : path_(std::move(path)) {
  check_own_file("Run", path_);
  // Without O_NONBLOCK, opening a named pipe would wait for somebody to read from it.
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const bool is_new = !file_.is_open() && errno == ENOENT;
  if (is_new)
    file_ = Descriptor(
        ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  struct stat status = {};
  if (!file_.is_open() || ::fstat(file_.get(), &status) != 0) give_up("open");
  if (!S_ISREG(status.st_mode)) fail<FileError>("[Run] '{}' is not a regular file", path_.string());
  if (is_new) return;
  if (status.st_nlink > 1) {
    fail<FileError>(
        "[Run] '{}' is a file of {} names (hard links), and writing to it would change it under each: put a "
        "copy "
        "of it there",
        path_.string(), status.st_nlink);
  }
  const auto found = static_cast<std::uint64_t>(status.st_size);
  if (found < size) {
    fail<FileError>(
        "[Run] '{}' has {} bytes, but it had {} when the checkpoint was saved: restore it, or remove it to "
        "begin it anew",
        path_.string(), found, size);
  }
  size_ = size;
}

AppendFile::~AppendFile() {
  // A destructor can't report an error. Whoever needs to know has called flush.
  if (file_.is_open()) write_buffer();
}

void AppendFile::give_up(const char* action) const {
  fail<FileError>("[Run] can't {} '{}': {}", action, path_.string(), std::generic_category().message(errno));
}

void AppendFile::cut() {
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) give_up("cut");
}

bool AppendFile::write_buffer() {
  while (!buffer_.empty()) {
    const ssize_t n = ::write(file_.get(), buffer_.data(), buffer_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    synced_ = false;
    size_ += static_cast<std::uint64_t>(n);
    buffer_.erase(0, static_cast<std::size_t>(n));
  }
  return true;
}

void AppendFile::flush() {
  if (!write_buffer()) give_up("write");
}

void AppendFile::sync() {
  flush();
  while (!synced_) {
    synced_ = ::fdatasync(file_.get()) == 0;
    if (!synced_ && errno != EINTR) give_up("flush");
  }
}

}  // namespace fovea::detail
