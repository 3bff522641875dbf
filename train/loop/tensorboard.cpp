#include "train/loop/tensorboard.h"

#include <bit>
#include <optional>

#include "train/io/crc.h"
#include "train/io/little_endian.h"

namespace fovea::detail {
namespace {

// In a protocol buffer, a field begins with its number and wire type. Its value follows: a variable-length
// integer, 8 bytes, 4 bytes, or a length and that many bytes.
enum WireType : std::uint8_t { integer = 0, bytes_8 = 1, text = 2, bytes_4 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80U; value >>= 7U) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
  return bytes + static_cast<char>(value);
}

std::string key(unsigned field, WireType type) { return varint(field << 3U | type); }

std::string integer_field(unsigned field, std::int64_t value) {
  return key(field, integer) + varint(static_cast<std::uint64_t>(value));
}
std::string double_field(unsigned field, double value) {
  return key(field, bytes_8) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string float_field(unsigned field, float value) {
  return key(field, bytes_4) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string text_field(unsigned field, std::string_view value) {
  return key(field, text).append(varint(value.size())).append(value);
}

// The field numbers of the messages Event, Summary and Summary.Value.
constexpr unsigned event_time = 1, event_step = 2, event_version = 3, event_summary = 5;
constexpr unsigned summary_value = 1;
constexpr unsigned value_tag = 1, value_simple = 2;

// The TFRecord format masks its checksums, because the checksum of data that contain checksums is weak.
std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8U; }

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return length + little_endian(masked_crc(length)) + std::string(data) + little_endian(masked_crc(data));
}

}  // namespace

std::string tensorboard_beginning(double time) {
  return tf_record(double_field(event_time, time) + text_field(event_version, "brain.Event:2"));
}

std::string tensorboard_record(double time, std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    summary += text_field(summary_value,
                          text_field(value_tag, tag) + float_field(value_simple, static_cast<float>(value)));
  }
  return tf_record(double_field(event_time, time) + integer_field(event_step, step) +
                   text_field(event_summary, summary));
}

bool are_tensorboard_records(std::string_view bytes) {
  constexpr std::size_t length_bytes = 8, checksum_bytes = 4;
  // Takes bytes and the checksum that follows them; nothing if there are too few, or others than were
  // written.
  const auto take = [&](std::uint64_t size) -> std::optional<std::string_view> {
    if (bytes.size() < checksum_bytes || size > bytes.size() - checksum_bytes) return std::nullopt;
    const std::string_view taken = bytes.substr(0, size), checksum = bytes.substr(size, checksum_bytes);
    bytes.remove_prefix(size + checksum_bytes);
    return little_endian(masked_crc(taken)) == checksum ? std::optional(taken) : std::nullopt;
  };
  while (!bytes.empty()) {
    const std::optional<std::string_view> length = take(length_bytes);
    if (!length || !take(from_little_endian<std::uint64_t>(*length))) return false;
  }
  return true;
}

}  // namespace fovea::detail
