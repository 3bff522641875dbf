#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "train/io/file.h"

namespace fovea::detail {

/// A log: a file that only grows, and that a resumed run cuts to what it was. Writes are gathered until
/// `flush`. Errors are FileErrors with the path and the system's reason.
class AppendFile {
 public:
  /// Opens a file, or makes it, to go on after its first `size` bytes. A file that is not there is begun
  /// anew, whatever the size. Throws: FileError if it is shorter. It is not cut yet.
  AppendFile(std::filesystem::path path, std::uint64_t size);
  AppendFile(AppendFile&&) noexcept = default;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  /// Drops what is beyond the size.
  void cut();
  void append(std::string_view text) { buffer_ += text; }
  void flush();
  /// Flushes to the disk.
  void sync();

  /// With what is not flushed yet.
  std::uint64_t size() const { return size_ + buffer_.size(); }

 private:
  [[noreturn]] void give_up(const char* action) const;
  bool write_buffer();

  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;  // of the file
  bool synced_ = false;
  std::string buffer_;
};

}  // namespace fovea::detail
