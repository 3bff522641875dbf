#include "cli/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <unistd.h>
#include <utility>

#include "autograd/base/text.h"

namespace fovea::cli {
namespace {

// The bytes of a UTF-8 character, by its first byte; 1 for a byte that begins none.
std::size_t length_by_first_byte(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
}

// The number of bytes at the end of a text that are the beginning of a character.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const char byte = text[text.size() - back];
    if ((static_cast<unsigned char>(byte) & 0xC0U) == 0x80U) continue;  // not the first byte of its character
    return length_by_first_byte(byte) > back ? back : 0;
  }
  return 0;
}

std::string safe_for_terminal(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    safe += detail::printable(text.substr(0, end));
    if (end < text.size()) safe += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return safe;
}

}  // namespace

ModelText::ModelText(std::FILE* stream, bool raw)
    : stream_(stream), raw_(raw || isatty(fileno(stream)) == 0) {}

void ModelText::print(std::string_view text) {
  if (raw_) {
    fmt::print(stream_, "{}", text);
  } else {
    kept_ += text;
    const std::size_t whole = kept_.size() - unfinished_bytes(kept_);
    fmt::print(stream_, "{}", safe_for_terminal(std::string_view(kept_).substr(0, whole)));
    kept_.erase(0, whole);
  }
  std::fflush(stream_);
}

void ModelText::end_line() {
  fmt::print(stream_, "{}\n", safe_for_terminal(std::exchange(kept_, "")));
  std::fflush(stream_);
}

}  // namespace fovea::cli
