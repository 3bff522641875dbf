#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>

namespace fovea::detail {

// All file formats here are little-endian, and elements are read and written as they lie in memory.
static_assert(std::endian::native == std::endian::little, "Fovea's files need a little-endian machine");

/// The bytes of a number, the least significant one first.
template <std::unsigned_integral T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// The number that the bytes are, of which there must be sizeof(T).
template <std::unsigned_integral T>
T from_little_endian(std::string_view bytes) {
  T value = 0;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace fovea::detail
