#include "train/loop/terminal.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <unistd.h>

namespace fovea::detail {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_terminal(std::FILE* stream) {
  const std::string_view kind = environment("TERM");
  return isatty(fileno(stream)) != 0 && !kind.empty() && kind != "dumb";
}

std::int64_t width_of(std::FILE* stream) {
  winsize size{};
  const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void put(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace fovea::detail
