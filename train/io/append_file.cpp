#include "train/io/append_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <span>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "autograd/base/fail.h"
#include "train/io/crc.h"

namespace fovea::detail {

AppendFile::AppendFile(std::filesystem::path path, std::uint64_t size) : path_(std::move(path)) {
  check_own_file("Run", path_);
  // Without O_NONBLOCK, opening a named pipe would wait for somebody to read from it.
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
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
  read_checksum();
}

void AppendFile::read_checksum() {
  std::array<std::byte, 65536> part{};
  for (std::uint64_t offset = 0; offset < size_;) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), size_ - offset));
    const ssize_t n = ::pread(file_.get(), part.data(), wanted, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // another program has cut the file
    if (n <= 0) give_up("read");
    crc32_ = detail::crc32(std::span(part).first(static_cast<std::size_t>(n)), crc32_);
    offset += static_cast<std::uint64_t>(n);
  }
}

void AppendFile::append(std::string_view text) {
  buffer_ += text;
  crc32_ = detail::crc32(std::as_bytes(std::span(text)), crc32_);
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
