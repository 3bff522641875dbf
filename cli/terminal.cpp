#include "cli/terminal.h"

#include <string_view>

namespace fovea::cli {

Colours colours_of(std::FILE* stream) {
  if (!is_terminal(stream) || !detail::environment("NO_COLOR").empty()) return Colours::none;
  const std::string_view depth = detail::environment("COLORTERM");
  if (depth == "truecolor" || depth == "24bit") return Colours::rgb;
  return detail::environment("TERM").find("256color") != std::string_view::npos ? Colours::palette
                                                                                : Colours::none;
}

}  // namespace fovea::cli
