#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "train/io/file.h"

namespace fovea::detail {

/// A file that only grows, such as a log. A run that resumes from a checkpoint cuts it to the size that it
/// had when the checkpoint was saved. Appended text is kept in memory until `flush`. All errors are
/// FileErrors with the path and the system's reason.
class AppendFile {
 public:
  /// Opens a file to append after its first `size` bytes; what lies beyond them stays until `cut`. A file
  /// that does not exist is created, whatever `size` is. Throws: FileError if the file is shorter than
  /// `size`.
  AppendFile(std::filesystem::path path, std::uint64_t size);
  AppendFile(AppendFile&&) noexcept = default;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  /// Removes what lies beyond the size.
  void cut();
  void append(std::string_view text);
  /// Hands all appended text to the system.
  void flush();
  /// Waits until all appended text is on the disk.
  void sync();

  /// The size of the file and of the text that is not flushed yet.
  std::uint64_t size() const { return size_ + buffer_.size(); }
  /// The CRC-32 of all these bytes.
  std::uint32_t crc32() const { return crc32_; }

 private:
  [[noreturn]] void give_up(const char* action) const;
  bool write_buffer();
  void read_checksum();

  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;  // without the buffer
  std::uint32_t crc32_ = 0;
  bool synced_ = false;
  std::string buffer_;
};

}  // namespace fovea::detail
