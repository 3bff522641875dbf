#include "train/io/file.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <random>
#include <system_error>
#include <unistd.h>

#include "autograd/base/fail.h"

namespace fovea::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view temporary_prefix = ".fovea-";
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::size_t digits = 16;

std::string system_text(int error) { return std::generic_category().message(error); }

bool is_temporary(const std::string& name) {
  if (name.size() != temporary_prefix.size() + digits + temporary_suffix.size()) return false;
  if (!name.starts_with(temporary_prefix) || !name.ends_with(temporary_suffix)) return false;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return std::ranges::all_of(std::string_view(name).substr(temporary_prefix.size(), digits), is_digit);
}

std::string temporary_name() {
  std::random_device device;
  return fmt::format("{}{:08x}{:08x}{}", temporary_prefix, device(), device(), temporary_suffix);
}

// read(2) and write(2) transfer at most about 2^31 bytes in one call.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

// The result of a system call, which is repeated as long as signals interrupt it.
template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

bool flush(int fd) {
  return retried([&] { return ::fsync(fd); }) == 0;
}

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::regular:
      return "a regular file";
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::symlink:
      return "a symbolic link";
    case fs::file_type::fifo:
      return "a named pipe";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "a device";
  }
}

// What does not exist is no error: it will be made, or opening it says so.
void check_own(const char* function, const fs::path& path, fs::file_type wanted) {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(path, error);
  if (!fs::status_known(found) && error)
    fail<FileError>("[{}] can't examine '{}': {}", function, path.string(), error.message());
  if (!fs::exists(found) || found.type() == wanted) return;
  fail<FileError>("[{}] '{}' is {}, but {} is needed there: nothing in a run's folder is followed out of it",
                  function, path.string(), kind_of(found.type()), kind_of(wanted));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(const char* function, const fs::path& path)
    // Without O_NONBLOCK, opening a named pipe would wait for somebody to write to it.
    : function_(function), path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status = {};
  if (!file_.is_open() || ::fstat(file_.get(), &status) != 0) {
    fail<FileError>("[{}] can't open '{}': {}", function_, path.string(), system_text(errno));
  }
  if (!S_ISREG(status.st_mode)) fail<FileError>("[{}] '{}' is not a regular file", function_, path.string());
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t n = retried([&] {
      return ::pread(file_.get(), to.data(), std::min(to.size(), most_at_once), static_cast<off_t>(offset));
    });
    if (n < 0) fail<FileError>("[{}] can't read '{}': {}", function_, path_.string(), system_text(errno));
    if (n == 0) {
      fail<FileError>("[{}] '{}' ends at byte {}: another program cut it while it was read", function_,
                      path_.string(), offset);
    }
    offset += static_cast<std::uint64_t>(n);
    to = to.subspan(static_cast<std::size_t>(n));
  }
}

std::string read_file(const char* function, const fs::path& path) {
  const InputFile file(function, path);
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

AtomicFile::AtomicFile(const char* function, const fs::path& path)
    : function_(function), path_(path), folder_(path.has_parent_path() ? path.parent_path() : ".") {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(path, error);
  if (fs::exists(found) && !fs::is_regular_file(found) && !fs::is_symlink(found)) {
    fail<FileError>("[{}] can't write '{}': the path exists and is not a regular file", function_,
                    path.string());
  }
  sweep_temporary_files(folder_);
  // Another program may sweep the folder before the new file is locked and remove it as stale. Then its link
  // count is 0, and another file is made.
  struct stat status = {};
  do {
    const fs::path name = folder_ / temporary_name();
    file_ = Descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file_.is_open()) give_up("write");
    temporary_ = name;
    retried([&] { return ::flock(file_.get(), LOCK_EX); });
  } while (::fstat(file_.get(), &status) == 0 && status.st_nlink == 0);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::give_up(const char* action) const {
  const std::string reason = system_text(errno);
  const bool was_there = fs::exists(fs::symlink_status(path_));
  fail<FileError>("[{}] can't {} '{}': {}{}", function_, action, path_.string(), reason,
                  was_there ? "; the older file there is unchanged" : "");
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n =
        retried([&] { return ::write(file_.get(), bytes.data(), std::min(bytes.size(), most_at_once)); });
    if (n < 0) give_up("write");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit() {
  if (!flush(file_.get())) give_up("flush");
  // The file is still open and so still locked: no sweep can remove it before it is renamed.
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) give_up("replace");
  temporary_.clear();
  if (!sync_folder(folder_)) {
    fail<FileError>(
        "[{}] wrote '{}', but can't flush its folder: {}; the file may be lost if the machine stops now",
        function_, path_.string(), system_text(errno));
  }
}

bool sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.is_open() && (flush(opened.get()) || errno == EINVAL);
}

void check_own_file(const char* function, const fs::path& path) {
  check_own(function, path, fs::file_type::regular);
}

void check_own_folder(const char* function, const fs::path& path) {
  check_own(function, path, fs::file_type::directory);
}

void sweep_temporary_files(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!is_temporary(entry->path().filename().string())) continue;
    const Descriptor file(::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    // A program that is still writing the file holds its lock.
    if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
  }
}

}  // namespace fovea::detail
