#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/autograd/base/rng.h"

namespace fovea {

/// What a damaged or hostile text file holds in place of a part of it.
inline constexpr std::array<std::string_view, 28> hostile_parts{"",
                                                                "\"",
                                                                "{",
                                                                "}",
                                                                "[[[[[[[[",
                                                                "]",
                                                                ",",
                                                                ":",
                                                                "\\",
                                                                "\\ud800",
                                                                "\\u0000",
                                                                "null",
                                                                "true",
                                                                "0",
                                                                "-1",
                                                                "255",
                                                                "4294967296",
                                                                "9223372036854775808",
                                                                "1e999",
                                                                "0.5",
                                                                "\n",
                                                                "\r\n",
                                                                "\xef\xbb\xbf",
                                                                "\xff\xfe",
                                                                "\x1b]0;title\x07",
                                                                "\xe2\x80\xae",
                                                                " ",
                                                                "#version: 0.2\n"};

/// Changes a text in one to four places: a part is replaced, repeated, moved elsewhere, cut off, or nested
/// many times; or a bit is flipped. The same draws give the same text.
inline std::string mutated(std::string text, Rng& rng) {
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(rng.uniform_int(static_cast<std::int64_t>(n)));
  };
  for (std::size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = below(text.size()),
                      length = 1 + below(std::min<std::size_t>(text.size() - at, 40));
    const std::string part = text.substr(at, length);
    switch (below(8)) {
      case 0:
        text.replace(at, length, hostile_parts[below(hostile_parts.size())]);
        break;
      case 1:
        text.insert(at, hostile_parts[below(hostile_parts.size())]);
        break;
      case 2:
        text.insert(below(text.size()), part);
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        for (std::size_t i = below(200); i > 0; --i) text.insert(at, part);
        break;
      case 6:
        text.insert(at, std::string(below(3000), below(2) == 0 ? '[' : '{'));
        break;
      default:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
    }
  }
  return text;
}

}  // namespace fovea
