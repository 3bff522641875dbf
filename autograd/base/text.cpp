#include "autograd/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace fovea::detail {
namespace {

// In UTF-8, every byte of a character but its first has the form 10xxxxxx.
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  const std::size_t sign = n < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string_view shown = text.substr(0, longest);
  if (shown.size() < text.size()) {
    std::size_t cut = shown.size();
    while (cut > 0 && continues_character(text[cut])) --cut;
    shown = shown.substr(0, cut);
  }
  std::string safe;
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      safe += "\\n";
    } else if (c == '\t') {
      safe += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      safe += fmt::format("\\x{:02x}", byte);
    } else {
      safe += c;
    }
  }
  return shown.size() < text.size() ? safe + "..." : safe;
}

std::string in_quotes(std::string_view text) { return "'" + printable(text, 80) + "'"; }

}  // namespace fovea::detail
