#include "train/tokenizers/utf8.h"

#include <array>

namespace fovea::detail {

Character first_character(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return {};

  char32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {};
    code = code << 6 | (byte & 0x3FU);
  }
  constexpr std::array<char32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < least[length] || surrogate || code > 0x10FFFF) return {};
  return {code, length};
}

std::string to_utf8(char32_t code) {
  const auto rest = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  const auto lead = [code](unsigned mark, int shift) { return static_cast<char>(mark | code >> shift); };
  if (code < 0x80) return {lead(0, 0)};
  if (code < 0x800) return {lead(0xC0, 6), rest(0)};
  if (code < 0x10000) return {lead(0xE0, 12), rest(6), rest(0)};
  return {lead(0xF0, 18), rest(12), rest(6), rest(0)};
}

}  // namespace fovea::detail
