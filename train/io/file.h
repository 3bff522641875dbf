#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fovea/autograd/base/export.h"

/// Files that are read whole or at any offset, and files that are replaced atomically. All
/// errors are FileErrors with the path and the system's reason. They begin with the name of the function that
/// the user called, such as "[load_safetensors]".
namespace fovea::detail {

/// Owns an open file descriptor and closes it.
class FOVEA_API Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A regular file, open for reading.
class FOVEA_API InputFile {
 public:
  InputFile(const char* function, const std::filesystem::path& path);

  std::uint64_t size() const { return size_; }
  const Descriptor& descriptor() const { return file_; }
  /// Fills `to` with the bytes from `offset` on. Throws: FileError, also if the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  const char* function_;
  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

/// The bytes of a regular file. Files are read and never mapped into memory, because a mapped file that
/// another program cuts kills this one (SIGBUS). Throws: FileError.
FOVEA_API std::string read_file(const char* function, const std::filesystem::path& path);

/// Writes a file that replaces the one at `path` when it is committed. Until then the path is unchanged.
class AtomicFile {
 public:
  /// Creates a temporary file in the folder of `path`, and removes those that killed programs left there.
  AtomicFile(const char* function, const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file, unless it was committed.
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Flushes the file to the disk, renames it to `path` and flushes the folder.
  void commit();

 private:
  [[noreturn]] void give_up(const char* action) const;

  const char* function_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::filesystem::path temporary_;  // empty once it is renamed
  Descriptor file_;
};

/// Flushes the names of new files in a folder to the disk. Returns false, with errno, if that fails. Some
/// file systems can't flush folders, which is no failure.
bool sync_folder(const std::filesystem::path& folder);

// The folder of a run may be somebody else's, so that nothing in it is followed out of it.
/// Throws: FileError if a link stands at the path, or something else than a regular file.
FOVEA_API void check_own_file(const char* function, const std::filesystem::path& path);
/// Throws: FileError if a link stands at the path, or something else than a folder.
void check_own_folder(const char* function, const std::filesystem::path& path);

/// Removes the temporary files in a folder that AtomicFiles of killed programs have left, and no others.
void sweep_temporary_files(const std::filesystem::path& folder);

}  // namespace fovea::detail
