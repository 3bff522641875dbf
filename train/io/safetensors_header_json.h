#pragma once

#include <string>
#include <string_view>

#include "fovea/train/io/safetensors.h"

namespace fovea::detail {

/// The key of the header under which its metadata stand.
inline constexpr const char* metadata_key = "__metadata__";

/// Reads the JSON of a header: each tensor on its own, its shape checked against its range, and all metadata.
/// Throws: FileError, whose text begins with `what`, for anything that the format does not define.
void read_header_json(const std::string& what, std::string_view text, SafetensorsHeader& header);

}  // namespace fovea::detail
