#include "train/loop/tensorboard.h"

#include <cstring>
#include <vector>

#include "tests/support/catch.h"

namespace fovea::detail {
namespace {

// A reader written from the formats' descriptions alone. It computes checksums bit by bit, not by a table.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool done() const { return at_ == bytes_.size(); }
  template <class T>
  T fixed() {
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view text() { return take(varint()); }
  std::string_view record() {
    const std::string_view length = bytes_.substr(at_, 8);
    const auto size = fixed<std::uint64_t>();
    CHECK(fixed<std::uint32_t>() == masked(length));
    const std::string_view data = take(size);
    CHECK(fixed<std::uint32_t>() == masked(data));
    return data;
  }

 private:
  static std::uint32_t masked(std::string_view bytes) {
    std::uint32_t crc = 0xffffffff;
    for (const char byte : bytes) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        const std::uint32_t differs = (crc ^ (static_cast<unsigned char>(byte) >> bit)) & 1U;
        crc = (crc >> 1U) ^ (differs * 0x82f63b78U);
      }
    }
    crc = ~crc;
    return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
  }

  std::string_view take(std::size_t n) {
    REQUIRE(n <= bytes_.size() - at_);
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

TEST_CASE("TensorBoard: a file begins with a record of its version", "[tensorboard]") {
  const std::string bytes = tensorboard_beginning(1234.5);
  Reader file(bytes);
  Reader event(file.record());
  CHECK(file.done());
  CHECK(event.varint() == (1U << 3U | 1U));
  CHECK(event.fixed<double>() == 1234.5);
  CHECK(event.varint() == (3U << 3U | 2U));
  CHECK(event.text() == "brain.Event:2");
  CHECK(event.done());
}

TEST_CASE("TensorBoard: a record holds scalars at a step", "[tensorboard]") {
  const std::vector<Scalar> scalars{{"loss", 1.75}, {"learning_rate", 1e-3}};
  const std::string bytes = tensorboard_record(2.25, 300, scalars);
  Reader file(bytes);
  Reader event(file.record());
  CHECK(file.done());
  CHECK(event.varint() == (1U << 3U | 1U));
  CHECK(event.fixed<double>() == 2.25);
  CHECK(event.varint() == (2U << 3U));
  CHECK(event.varint() == 300);
  CHECK(event.varint() == (5U << 3U | 2U));
  Reader summary(event.text());
  CHECK(event.done());
  for (const auto& [tag, value] : scalars) {
    CHECK(summary.varint() == (1U << 3U | 2U));
    Reader scalar(summary.text());
    CHECK(scalar.varint() == (1U << 3U | 2U));
    CHECK(scalar.text() == tag);
    CHECK(scalar.varint() == (2U << 3U | 5U));
    CHECK(scalar.fixed<float>() == static_cast<float>(value));
    CHECK(scalar.done());
  }
  CHECK(summary.done());
}

}  // namespace
}  // namespace fovea::detail
