#include "autograd/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utf8proc.h>

#include "autograd/base/utf8.h"

namespace fovea::detail {
namespace {

// Whether a character shows as itself. Others begin a line or a command to the terminal, turn the direction
// of what follows, or do not show at all.
bool shows_as_itself(char32_t code) {
  const auto point = static_cast<utf8proc_int32_t>(code);
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return utf8proc_get_property(point)->ignorable == 0;
  }
}

std::string escaped_byte(char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\t') return "\\t";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

// The character that a text begins with, or a byte that is not UTF-8, as it is printed.
std::string shown(std::string_view text, const Character& character) {
  if (character.length == 0) return escaped_byte(text[0]);
  if (shows_as_itself(character.code)) return std::string(text.substr(0, character.length));
  if (character.length == 1) return escaped_byte(text[0]);
  return fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(character.code));
}

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
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const Character next = first_character(rest);
    const std::size_t length = std::max<std::size_t>(next.length, 1);
    if (length > longest - at) return safe + "...";
    safe += shown(rest, next);
    at += length;
  }
  return safe;
}

std::string in_quotes(std::string_view text) { return "'" + printable(text, 80) + "'"; }

}  // namespace fovea::detail
