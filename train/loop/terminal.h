#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "autograd/base/text.h"
#include "fovea/autograd/base/export.h"

// What is known of a terminal. Shared by the library and its program.
namespace fovea::detail {

/// The value of an environment variable; empty if it is not set.
FOVEA_API std::string_view environment(const char* name);

/// Whether the stream is a terminal on which a line can be rewritten.
FOVEA_API bool is_terminal(std::FILE* stream);

/// The number of columns of the terminal; 80 if the stream is none.
FOVEA_API std::int64_t width_of(std::FILE* stream);

/// Writes a text and flushes it. It never throws, so that a full disk or a reader that is gone ends no
/// training; the stream's error indicator, std::ferror, tells of it.
FOVEA_API void put(std::FILE* stream, std::string_view text);

}  // namespace fovea::detail
