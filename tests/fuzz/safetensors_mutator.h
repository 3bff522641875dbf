#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "fovea/autograd/base/rng.h"

namespace fovea {

/// Draws random mutations of safetensors files. A seed determines them, with any compiler. Most change the
/// header and correct the length before it, so that they pass the first checks of a reader.
class SafetensorsMutator {
 public:
  explicit SafetensorsMutator(std::uint64_t seed) : rng_(seed) {}

  std::string mutate(std::string bytes) {
    change(bytes);
    while (uniform_int(3) == 0) change(bytes);
    return bytes;
  }

 private:
  static constexpr std::size_t length_bytes = 8;

  // No expression calls this twice, because the compiler chooses the order in which arguments are evaluated.
  std::size_t uniform_int(std::size_t n) {
    return n == 0 ? 0 : static_cast<std::size_t>(rng_.uniform_int(static_cast<std::int64_t>(n)));
  }
  template <class T, std::size_t n>
  T one_of(const std::array<T, n>& values) {
    return values[uniform_int(n)];
  }

  void change(std::string& bytes) {
    switch (uniform_int(8)) {
      case 0:  // flips a bit
        if (!bytes.empty()) bytes[uniform_int(bytes.size())] ^= static_cast<char>(1U << uniform_int(8));
        break;
      case 1:  // replaces a byte
        if (!bytes.empty()) bytes[uniform_int(bytes.size())] = static_cast<char>(uniform_int(256));
        break;
      case 2:  // cuts the end off
        bytes.resize(uniform_int(bytes.size()));
        break;
      case 3:  // appends zeros
        bytes.append(1 + uniform_int(100), '\0');
        break;
      case 4:
        write_length(bytes, any_length(bytes.size()));
        break;
      default:
        change_header(bytes);
        break;
    }
  }

  std::uint64_t any_length(std::uint64_t size) {
    const std::array<std::uint64_t, 5> values{0, size - length_bytes, size, 99'999'999, ~std::uint64_t{0}};
    if (uniform_int(2) == 0) return one_of(values);
    const std::uint64_t bits = rng_.next();
    return bits >> uniform_int(64);
  }
  static void write_length(std::string& bytes, std::uint64_t length) {
    std::memcpy(bytes.data(), &length, std::min(bytes.size(), sizeof length));
  }
  static std::uint64_t read_length(const std::string& bytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), std::min(bytes.size(), sizeof length));
    return length;
  }

  void change_header(std::string& bytes) {
    if (bytes.size() < length_bytes) return;
    const std::size_t size = std::min<std::uint64_t>(read_length(bytes), bytes.size() - length_bytes);
    std::string header = bytes.substr(length_bytes, size);
    change_json(header);
    bytes.replace(length_bytes, size, header);
    if (uniform_int(8) != 0) write_length(bytes, header.size());
  }

  void change_json(std::string& json) {
    const std::size_t at = uniform_int(json.size());
    switch (uniform_int(7)) {
      case 0:
      case 1:
        change_number(json, at);
        break;
      case 2:  // copies a part to another place
        json.insert(place(json, at), json.substr(uniform_int(json.size())).substr(0, uniform_int(80)));
        break;
      case 3:
        json.insert(place(json, at), one_of(fragments));
        break;
      case 4: {  // nests brackets deeply
        const char bracket = "[{]}"[uniform_int(4)];
        json.insert(place(json, at), 1 + uniform_int(3000), bracket);
        break;
      }
      case 5:
        json.erase(at, 1 + uniform_int(20));
        break;
      default:
        if (!json.empty()) json[at] = R"({}[]",:0-.e\)"[uniform_int(12)];
        break;
    }
  }

  // The next place where a value or key may begin.
  static std::size_t place(const std::string& json, std::size_t at) {
    const std::size_t before = json.find_first_of("{[,:", at);
    return before == json.npos ? at : before + 1;
  }

  // Changes the next number, if there is one.
  void change_number(std::string& json, std::size_t at) {
    constexpr const char* digits = "0123456789";
    const std::size_t begin = json.find_first_of(digits, at);
    if (begin == json.npos) return;
    const std::size_t end = std::min(json.find_first_not_of(digits, begin), json.size());
    if (uniform_int(2) == 0) {
      json[begin + uniform_int(end - begin)] = digits[uniform_int(10)];
    } else {
      json.replace(begin, end - begin, one_of(numbers));
    }
  }

  static constexpr std::array<const char*, 6> numbers{
      "-1", "1.5", "2305843009213693952", "9223372036854775807", "18446744073709551615", "00"};
  static constexpr std::array<const char*, 9> fragments{
      R"("__metadata__":{"a":"b"},)",
      R"("fovea.aliases":"{\"x\":\"w\"}",)",
      R"("x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)",
      R"("dtype":"F64",)",
      R"("data_offsets":[0,4],)",
      R"("\ud800")",
      "true",
      "\xff",
      "{}"};

  Rng rng_;
};

}  // namespace fovea
