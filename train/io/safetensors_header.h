#pragma once

#include <string>
#include <string_view>

#include "fovea/train/io/safetensors.h"

// The header of a safetensors file: text to checked values and back.
namespace fovea::detail {

inline constexpr std::uint64_t largest_header =
    100'000'000;  // the limit of the format's first implementation
inline constexpr const char* aliases_key = "fovea.aliases";

/// Checks a header against the format and the number of bytes that follow it. `data_begin` is left at 0.
/// Throws: FileError, whose text begins with `what`: "[load_safetensors] 'model.safetensors'".
SafetensorsHeader parse_header(const std::string& what, std::string_view text, std::uint64_t data_bytes);

/// The header's text, with padding: the data begin at a multiple of 8 of the file.
/// Throws: ValueError for names and keys that the format or this library can't keep.
std::string format_header(const SafetensorsHeader& header);

}  // namespace fovea::detail
