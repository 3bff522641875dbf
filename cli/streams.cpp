#include "cli/streams.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace fovea::cli {

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The streams before it are open, so this one is the lowest number that is free.
    if (::open("/dev/null", O_RDWR) != stream) std::_Exit(2);
  }
}

void print_error(std::string_view text) {
  std::fflush(stdout);
  put(stderr, "fovea: " + std::string(text) + "\n");
}

bool output_is_written() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace fovea::cli
