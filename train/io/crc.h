#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/autograd/base/export.h"

/// Cyclic redundancy checks of 32 bits.
namespace fovea::detail {

/// CRC-32 as in ZIP files and zlib. To check data in parts, pass the result for the parts so far.
FOVEA_API std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t so_far = 0);

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4), as in TensorBoard's event files.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace fovea::detail
