#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string_view>

// Files that are read or written as a whole. Errors are FileErrors that begin with the name of the function
// that asked, "[read_text]", and have the path and the system's reason.
namespace fovea::detail {

/// The bytes of a regular file, mapped into memory: pages are read as they are touched, and shared with other
/// processes. The file must not become shorter meanwhile, or a read beyond its end ends the program.
class MappedFile {
 public:
  MappedFile(const char* function, const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;  // null where the file is empty
  std::size_t size_ = 0;
};

/// Writes these parts, one after another.
void write_file(const char* function, const std::filesystem::path& path,
                std::initializer_list<std::span<const std::byte>> parts);

}  // namespace fovea::detail
