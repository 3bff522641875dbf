#include "cli/terminal.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace fovea::cli {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  const std::string_view kind = environment("TERM");
  return isatty(fileno(stream)) != 0 && !kind.empty() && kind != "dumb";
}

Colours colours_of(std::FILE* stream) {
  if (!is_terminal(stream) || !environment("NO_COLOR").empty()) return Colours::none;
  const std::string_view depth = environment("COLORTERM");
  if (depth == "truecolor" || depth == "24bit") return Colours::rgb;
  return environment("TERM").find("256color") != std::string_view::npos ? Colours::palette : Colours::none;
}

std::int64_t width_of(std::FILE* stream) {
  winsize size{};
  const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  const std::size_t sign = n < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace fovea::cli
