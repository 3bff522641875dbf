#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fovea/autograd/base/export.h"

/// Text in columns of a terminal. A column holds one narrow character, such as a letter; a wide one, such as
/// 漢, takes two, and a combining one, such as an accent that follows its letter, none. Text is UTF-8.
namespace fovea::detail {

/// The number of columns that a text without control characters takes in a terminal.
FOVEA_API std::size_t column_count(std::string_view text);

/// The text and blanks after it, up to a number of columns. A longer text stays as it is.
FOVEA_API std::string padded(std::string_view text, std::size_t columns);

/// The same text if it fits into a number of columns; otherwise as much of its beginning as fits with "..."
/// after it. No character is cut from what combines with it. Numbers of columns below 3 count as 3.
FOVEA_API std::string fitted(std::string_view text, std::size_t columns);

}  // namespace fovea::detail
