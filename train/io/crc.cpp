#include "train/io/crc.h"

#include <array>

namespace fovea::detail {
namespace {

using Table = std::array<std::uint32_t, 256>;

// What each value of a byte adds to the remainder. Polynomials are written with their bits in reverse.
constexpr Table make_table(std::uint32_t polynomial) {
  Table table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1U) ^ ((remainder & 1U) != 0 ? polynomial : 0U);
    }
    table[byte] = remainder;
  }
  return table;
}

constexpr Table ieee = make_table(0xedb88320U);
constexpr Table castagnoli = make_table(0x82f63b78U);

std::uint32_t checksum(const Table& table, std::span<const std::byte> bytes, std::uint32_t so_far) {
  std::uint32_t remainder = ~so_far;
  for (const std::byte byte : bytes) {
    remainder = table[(remainder ^ std::to_integer<std::uint32_t>(byte)) & 0xffU] ^ (remainder >> 8U);
  }
  return ~remainder;
}

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t so_far) {
  return checksum(ieee, bytes, so_far);
}

std::uint32_t crc32c(std::string_view bytes) {
  return checksum(castagnoli, std::as_bytes(std::span(bytes)), 0);
}

}  // namespace fovea::detail
