#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "fovea/inspect/heat_map.h"

namespace fovea::cli {

/// Whether the stream is a terminal on which a line can be rewritten.
bool is_terminal(std::FILE* stream);

/// The colours that a stream shows: none unless it is a terminal, or if NO_COLOR is set
/// (https://no-color.org).
Colours colours_of(std::FILE* stream);

/// Columns of the terminal, or 80 where there is none.
std::int64_t width_of(std::FILE* stream);

/// 1234567 as "1,234,567".
std::string with_commas(std::int64_t n);

}  // namespace fovea::cli
