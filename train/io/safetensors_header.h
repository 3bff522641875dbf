#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/train/io/safetensors.h"

/// The header of a safetensors file, from text to checked values and back.
namespace fovea::detail {

/// The longest header that is read or written, in bytes: the limit of the format's first implementation.
inline constexpr std::uint64_t largest_header = 100'000'000;

/// The metadata keys under which Fovea keeps the names of tied tensors, the settings of the layer, and the
/// checksums.
inline constexpr const char *aliases_key = "fovea.aliases", *settings_key = "fovea.settings",
                            *checksums_key = "fovea.crc32";

/// Reads a header and checks it against the format and against the number of bytes that follow it.
/// `data_begin` stays 0. Throws: FileError, whose text begins with `what`: "[load_safetensors]
/// 'model.safetensors'".
SafetensorsHeader parse_header(const std::string& what, std::string_view text, std::uint64_t data_bytes);

/// The text of a header, padded so that the data begin at a multiple of 8 bytes in the file.
/// Throws: ValueError for names and keys that the format or this library does not allow.
std::string format_header(const SafetensorsHeader& header);

}  // namespace fovea::detail
