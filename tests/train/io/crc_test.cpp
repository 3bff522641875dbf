#include "train/io/crc.h"

#include "tests/support/catch.h"

using namespace fovea::detail;

namespace {

std::uint32_t crc32_of(std::string_view text, std::uint32_t so_far = 0) {
  return crc32(std::as_bytes(std::span(text)), so_far);
}

}  // namespace

TEST_CASE("crc32c: the examples of RFC 3720", "[train]") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  CHECK(crc32c("123456789") == 0xe3069283U);
}

TEST_CASE("crc32: the check value of the algorithm, in one part or two", "[train]") {
  CHECK(crc32_of("123456789") == 0xcbf43926U);
  CHECK(crc32_of("6789", crc32_of("12345")) == 0xcbf43926U);
  CHECK(crc32_of("") == 0);
}

TEST_CASE("crc32: any division into parts gives the same", "[train]") {
  std::string text;
  for (int i = 0; i < 61; ++i) text += static_cast<char>(i * i * 37 + 11);
  for (std::size_t at = 0; at <= text.size(); ++at) {
    CHECK(crc32_of(text.substr(at), crc32_of(text.substr(0, at))) == crc32_of(text));
  }
  std::uint32_t by_bytes = 0;
  for (const char byte : text) by_bytes = crc32_of({&byte, 1}, by_bytes);
  CHECK(by_bytes == crc32_of(text));
}
