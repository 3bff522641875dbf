#include "train/io/safetensors_header_json.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "train/io/json.h"

namespace fovea::detail {
namespace {

// Short entries take many times their length in memory.
constexpr std::size_t most_metadata = 100'000;

// The bits of an element, for every dtype of the format.
std::optional<std::uint64_t> bits_of(std::string_view dtype) {
  static const std::map<std::string_view, std::uint64_t> table{
      {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},        {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
      {"F64", 64},    {"I64", 64},    {"U64", 64},    {"C64", 64}};
  const auto found = table.find(dtype);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

// Handles the events of the JSON parser. The format has three levels, so each event is either expected at the
// present place or an error. Nothing nests deeper, and nothing is stored that the format does not define.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& what, SafetensorsHeader& header) : what_(what), header_(header) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::start) return go(Place::root);
    if (place_ == Place::root_value && key_ == metadata_key) return go(Place::metadata);
    if (place_ == Place::root_value) {
      given_ = {};
      header_.entries.emplace_back().name = key_;
      return go(Place::entry);
    }
    unexpected("an object");
  }
  bool end_object() override {
    if (place_ == Place::entry) finish_entry();
    return go(place_ == Place::root ? Place::end : Place::root);
  }
  bool key(std::string& name) override {
    key_ = name;
    if (place_ == Place::root) {
      if (key_.empty()) refuse("the header has a tensor without a name");
      if (!names_.insert(key_).second) refuse("the header has {} twice", in_quotes(key_));
      return go(Place::root_value);
    }
    if (place_ == Place::metadata) {
      if (header_.metadata.contains(key_))
        refuse("the header has the metadata key {} twice", in_quotes(key_));
      if (header_.metadata.size() == most_metadata)
        refuse("the header has more than {} entries of metadata", most_metadata);
      return go(Place::metadata_value);
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (key_ != fields[i]) continue;
      if (std::exchange(given_[i], true)) refuse("tensor {} has {} twice", entry_name(), fields[i]);
      return go(static_cast<Place>(static_cast<std::size_t>(Place::dtype) + i));
    }
    refuse("tensor {} has {}, which the format does not define", entry_name(), in_quotes(key_));
  }
  bool string(std::string& text) override {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(key_, text);
      return go(Place::metadata);
    }
    if (place_ == Place::dtype) {
      if (!bits_of(text))
        refuse("tensor {} has dtype {}, which the format does not define", entry_name(), in_quotes(text));
      header_.entries.back().dtype = text;
      return go(Place::entry);
    }
    unexpected("text");
  }
  bool start_array(std::size_t) override {
    numbers_.clear();
    if (place_ == Place::shape) return go(Place::shape_numbers);
    if (place_ == Place::offsets) return go(Place::offset_numbers);
    unexpected("a list");
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (place_ != Place::shape_numbers && place_ != Place::offset_numbers) unexpected("a number");
    if (number > std::numeric_limits<std::int64_t>::max()) too_large();
    if (numbers_.size() == most_axes) refuse("tensor {} has more than {} axes", entry_name(), most_axes);
    numbers_.push_back(number);
    return true;
  }
  bool end_array() override {
    SafetensorsEntry& entry = header_.entries.back();
    if (place_ == Place::shape_numbers) {
      for (const std::uint64_t size : numbers_) entry.shape.push_back(static_cast<std::int64_t>(size));
    } else {
      if (numbers_.size() != 2) {
        refuse("tensor {} has {} data_offsets instead of 2", entry_name(), numbers_.size());
      }
      entry.begin = numbers_[0];
      entry.end = numbers_[1];
    }
    return go(Place::entry);
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const std::string&) override {
    unexpected("a number that is not whole or is beyond 64 bits");
  }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    refuse("the header is not valid JSON at its byte {}", position);
  }

 private:
  enum class Place : std::uint8_t {
    start,
    root,
    root_value,
    metadata,
    metadata_value,
    entry,
    dtype,
    shape,
    offsets,  // these three are the values of `fields`, in that order
    shape_numbers,
    offset_numbers,
    end
  };
  static constexpr std::array<const char*, 3> fields{"dtype", "shape", "data_offsets"};

  bool go(Place place) {
    place_ = place;
    return true;
  }
  std::string entry_name() const { return in_quotes(header_.entries.back().name); }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail<FileError>("{}: {}", what_, fmt::format(text, std::forward<Args>(args)...));
  }
  [[noreturn]] void too_large() const {
    refuse("tensor {} has more elements than an array can have", entry_name());
  }
  [[noreturn]] void unexpected(const char* found) const {
    if (place_ == Place::metadata_value) {
      refuse("the metadata value of {} is {}: the format allows text only", in_quotes(key_), found);
    }
    if (place_ == Place::root_value) refuse("the value of {} is {}, not an object", in_quotes(key_), found);
    refuse("tensor {} has {} in its {}", entry_name(), found, key_);
  }

  void finish_entry() const {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!given_[i]) refuse("tensor {} has no {}", entry_name(), fields[i]);
    }
    check_size(header_.entries.back());
  }

  // Checks that the range has the bytes of the shape's elements. Sizes of 0 count as 1 in the product, so
  // that no stride computed from the shape later can overflow 63 bits either.
  void check_size(const SafetensorsEntry& entry) const {
    std::int64_t at_most = 1;
    bool is_empty = false;
    for (const std::int64_t size : entry.shape) {
      is_empty = is_empty || size == 0;
      if (__builtin_mul_overflow(at_most, std::max<std::int64_t>(size, 1), &at_most) ||
          at_most > most_elements) {
        too_large();
      }
    }
    std::int64_t bits = 0;
    const auto bits_each = static_cast<std::int64_t>(*bits_of(entry.dtype));
    if (__builtin_mul_overflow(is_empty ? 0 : at_most, bits_each, &bits)) too_large();
    if (entry.end < entry.begin || static_cast<std::uint64_t>(bits) % 8 != 0 ||
        entry.end - entry.begin != static_cast<std::uint64_t>(bits) / 8) {
      refuse("tensor {}, {} of shape {}, has {} bytes, but its data_offsets are [{}, {}]", entry_name(),
             entry.dtype, to_string(entry.shape), static_cast<double>(bits) / 8, entry.begin, entry.end);
    }
  }

  const std::string& what_;
  SafetensorsHeader& header_;
  Place place_ = Place::start;
  std::string key_;
  std::set<std::string> names_;
  std::array<bool, fields.size()> given_{};
  std::vector<std::uint64_t> numbers_;
};

}  // namespace

void read_header_json(const std::string& what, std::string_view text, SafetensorsHeader& header) {
  HeaderReader reader(what, header);
  if (!text.starts_with('{')) fail<FileError>("{}: the header does not begin with a brace", what);
  try {
    read_json(text, reader);
  } catch (const ValueError& error) {
    fail<FileError>("{}: the header is malformed: {}", what, error.what());
  }
}

}  // namespace fovea::detail
