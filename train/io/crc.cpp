#include "train/io/crc.h"

#include <array>
#include <cstring>

#include "train/io/little_endian.h"

namespace fovea::detail {
namespace {

constexpr std::size_t at_once = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, at_once>;

// Table n has what each value of a byte adds to the remainder when n more bytes have followed, so that
// several bytes are taken at once (Kounavis and Berry 2005). Polynomials are written with their bits in
// reverse.
constexpr Tables make_tables(std::uint32_t polynomial) {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1U) ^ ((remainder & 1U) != 0 ? polynomial : 0U);
    }
    tables[0][byte] = remainder;
  }
  for (std::size_t n = 1; n < at_once; ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[n - 1][byte];
      tables[n][byte] = tables[0][before & 0xffU] ^ (before >> 8U);
    }
  }
  return tables;
}

constexpr Tables ieee = make_tables(0xedb88320U);
constexpr Tables castagnoli = make_tables(0x82f63b78U);

std::uint32_t checksum(const Tables& tables, std::span<const std::byte> bytes, std::uint32_t so_far) {
  std::uint32_t remainder = ~so_far;
  for (; bytes.size() >= at_once; bytes = bytes.subspan(at_once)) {
    std::uint64_t part = 0;
    std::memcpy(&part, bytes.data(), at_once);
    part ^= remainder;
    remainder = 0;
    for (std::size_t i = 0; i < at_once; ++i) remainder ^= tables[at_once - 1 - i][part >> (8 * i) & 0xffU];
  }
  for (const std::byte byte : bytes) {
    remainder = tables[0][(remainder ^ std::to_integer<std::uint32_t>(byte)) & 0xffU] ^ (remainder >> 8U);
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
