#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/autograd/base/export.h"

/// Numbers and names as messages for people show them. Text is UTF-8.
namespace fovea::detail {

/// Writes 1234567 as "1,234,567".
FOVEA_API std::string with_commas(std::int64_t n);

/// Reads a text that is a whole number and nothing else: "-12", but not "+12", " 12", "1e3" or "".
FOVEA_API std::optional<std::int64_t> whole_number(std::string_view text);

/// Makes a text from a file or a user safe to print on one line of a terminal, as every such text is printed.
/// What a terminal would obey or not show is escaped: control characters as "\n", "\t", "\x1b" or "\u{9b}",
/// those that turn the direction of text or take no room as "\u{202e}", and bytes that are not UTF-8 as
/// "\xff". A text of more than `longest` bytes is cut between two characters, and "..." stands for the rest.
FOVEA_API std::string printable(std::string_view text,
                                std::size_t longest = std::numeric_limits<std::size_t>::max());

/// The first 80 bytes of a text, printable and in single quotes: for a name in an error message.
FOVEA_API std::string in_quotes(std::string_view text);

}  // namespace fovea::detail
