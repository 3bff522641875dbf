#include "train/whole_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <system_error>
#include <unistd.h>

#include "autograd/fail.h"

namespace fovea::detail {
namespace {

[[noreturn]] void give_up(const char* function, const char* action, const std::filesystem::path& path,
                          int error) {
  fail<FileError>("[{}] can't {} '{}': {}", function, action, path.string(),
                  std::generic_category().message(error));
}

}  // namespace

MappedFile::MappedFile(const char* function, const std::filesystem::path& path) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) ::close(fd);
    }
  };
  // Without O_NONBLOCK a named pipe that nobody writes to would be waited for.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status = {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) give_up(function, "open", path, errno);
  if (S_ISDIR(status.st_mode)) give_up(function, "read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) fail<FileError>("[{}] '{}' is no regular file", function, path.string());
  if (status.st_size == 0) return;

  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (mapped == MAP_FAILED) give_up(function, "map", path, errno);  // NOLINT: the macro has a cast
  data_ = static_cast<const std::byte*>(mapped);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void write_file(const char* function, const std::filesystem::path& path,
                std::initializer_list<std::span<const std::byte>> parts) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  for (const std::span<const std::byte> part : parts) {
    file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
  }
  file.close();
  if (!file) give_up(function, "write", path, errno);
}

}  // namespace fovea::detail
