#include "train/io/safetensors_header.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"

namespace fovea::detail {
namespace {

constexpr std::size_t most_axes = 64;
constexpr const char* metadata_key = "__metadata__";

// All dtypes of the format.
std::optional<std::uint64_t> bits_of(std::string_view dtype) {
  static const std::map<std::string_view, std::uint64_t> table{
      {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},        {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
      {"F64", 64},    {"I64", 64},    {"U64", 64},    {"C64", 64}};
  const auto found = table.find(dtype);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

// Takes the events of the JSON parser. The format has three levels and no more, so each event is either what
// is expected in this place or an error: nothing nests deeper, and nothing is kept that was not asked for.
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
      if (key_.empty()) refuse("has a tensor without a name");
      if (!names_.insert(key_).second) refuse("has {} twice", in_quotes(key_));
      return go(Place::root_value);
    }
    if (place_ == Place::metadata) {
      if (header_.metadata.contains(key_)) refuse("has the metadata key {} twice", in_quotes(key_));
      return go(Place::metadata_value);
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (key_ != fields[i]) continue;
      if (std::exchange(given_[i], true)) refuse("tensor {} has {} twice", entry_name(), fields[i]);
      return go(static_cast<Place>(static_cast<std::size_t>(Place::dtype) + i));
    }
    refuse("tensor {} has {}, which is not of the format", entry_name(), in_quotes(key_));
  }
  bool string(std::string& text) override {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(key_, text);
      return go(Place::metadata);
    }
    if (place_ == Place::dtype) {
      if (!bits_of(text)) refuse("tensor {} has dtype {}, which is not known", entry_name(), in_quotes(text));
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
        refuse("tensor {} has {} data_offsets, not 2", entry_name(), numbers_.size());
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
    unexpected("a number that is not whole or beyond 64 bits");
  }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    refuse("the header is no valid JSON at its byte {}", position);
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
    offsets,  // the values of `fields`, in that order
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
    throw FileError(what_ + ": " + fmt::format(text, std::forward<Args>(args)...));
  }
  [[noreturn]] void too_large() const { refuse("tensor {} has a size beyond 63 bits", entry_name()); }
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

  // The range holds as many bytes as the shape has elements. No product here, nor a stride made of the shape
  // later, leaves 63 bits.
  void check_size(const SafetensorsEntry& entry) const {
    std::int64_t at_most = 1;
    bool is_empty = false;
    for (const std::int64_t size : entry.shape) {
      is_empty = is_empty || size == 0;
      if (__builtin_mul_overflow(at_most, std::max<std::int64_t>(size, 1), &at_most)) too_large();
    }
    std::int64_t bits = 0;
    const auto bits_each = static_cast<std::int64_t>(*bits_of(entry.dtype));
    if (__builtin_mul_overflow(is_empty ? 0 : at_most, bits_each, &bits)) too_large();
    if (entry.end < entry.begin || static_cast<std::uint64_t>(bits) % 8 != 0 ||
        entry.end - entry.begin != static_cast<std::uint64_t>(bits) / 8) {
      refuse("tensor {}, {} of shape {}, has {} bytes, and its data_offsets are [{}, {}]", entry_name(),
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

// Sorted by place, the tensors cover all bytes, each once.
void check_ranges(const std::string& what, std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::ranges::stable_sort(entries, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.end > data_bytes) {
      fail<FileError>(
          "{}: tensor {} ends at byte {} of the data, of which there are {}: is the file cut off?", what,
          in_quotes(entry.name), entry.end, data_bytes);
    }
    if (entry.begin != covered) {
      fail<FileError>("{}: tensor {} begins at byte {} of the data, {} byte {}, where the one before it ends",
                      what, in_quotes(entry.name), entry.begin,
                      entry.begin < covered ? "an overlap: before" : "a gap: after", covered);
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    fail<FileError>("{}: {} bytes follow the last tensor, and belong to none", what, data_bytes - covered);
  }
}

void read_json(const std::string& what, std::string_view text, SafetensorsHeader& header) {
  HeaderReader reader(what, header);
  if (!text.starts_with('{')) fail<FileError>("{}: the header does not begin with a brace", what);
  // The parser would take it for the end of the text.
  if (text.find('\0') != text.npos) fail<FileError>("{}: the header has a zero byte", what);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
}

// Takes the aliases out of the metadata, where they are text again: {"head.W": "body.W"}. That is what the
// metadata of a header look like, so it is read as those.
void take_aliases(const std::string& what, SafetensorsHeader& header) {
  const auto found = header.metadata.find(aliases_key);
  if (found == header.metadata.end()) return;
  const std::string here = fmt::format("{}: in the metadata's {}", what, aliases_key);
  SafetensorsHeader inner;
  read_json(here, fmt::format("{{\"{}\":{}}}", metadata_key, found->second), inner);
  if (!inner.entries.empty()) fail<FileError>("{}: more than names", here);

  std::set<std::string_view> tensors;
  for (const SafetensorsEntry& entry : header.entries) tensors.insert(entry.name);
  for (const auto& [name, original] : inner.metadata) {
    if (name.empty() || tensors.contains(name) || !tensors.contains(original)) {
      fail<FileError>("{}: {} stands for {}: it must be a new name of a tensor that is there", here,
                      in_quotes(name), in_quotes(original));
    }
    header.aliases.push_back({name, original});
  }
  header.metadata.erase(found);
}

void check_name(std::set<std::string>& names, const std::string& name) {
  if (name.empty()) fail<ValueError>("[save_safetensors] a tensor has no name");
  if (name == metadata_key) fail<ValueError>("[save_safetensors] no tensor can be called {}", metadata_key);
  if (!names.insert(name).second)
    fail<ValueError>("[save_safetensors] the state has {} twice", in_quotes(name));
}

void check_names(const SafetensorsHeader& header) {
  std::set<std::string> names;
  for (const SafetensorsEntry& entry : header.entries) check_name(names, entry.name);
  const std::set<std::string> originals = names;
  for (const auto& [name, original] : header.aliases) {
    check_name(names, name);
    if (!originals.contains(original)) {
      fail<ValueError>("[save_safetensors] the state says that {} is {}, which it does not have",
                       in_quotes(name), in_quotes(original));
    }
  }
  if (header.metadata.contains(aliases_key)) {
    fail<ValueError>("[save_safetensors] the metadata key {} is for the names of tied tensors", aliases_key);
  }
}

}  // namespace

SafetensorsHeader parse_header(const std::string& what, std::string_view text, std::uint64_t data_bytes) {
  SafetensorsHeader header;
  read_json(what, text, header);
  check_ranges(what, header.entries, data_bytes);
  take_aliases(what, header);
  return header;
}

std::string format_header(const SafetensorsHeader& header) {
  check_names(header);
  using nlohmann::json;
  std::string text;
  const auto add = [&](const std::string& key, const json& value) {
    text += fmt::format("{}{}:{}", text.empty() ? '{' : ',', json(key).dump(), value.dump());
  };
  try {
    Metadata metadata = header.metadata;
    if (!header.aliases.empty()) {
      json aliases;
      for (const auto& [name, original] : header.aliases) aliases[name] = original;
      metadata[aliases_key] = aliases.dump();
    }
    if (!metadata.empty()) add(metadata_key, metadata);
    for (const auto& [name, dtype, shape, begin, end] : header.entries) {
      add(name, {{"dtype", dtype},
                 {"shape", std::vector(shape.begin(), shape.end())},
                 {"data_offsets", {begin, end}}});
    }
  } catch (const json::type_error&) {
    fail<ValueError>("[save_safetensors] a name, or a key or value of the metadata, is not UTF-8");
  }
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace fovea::detail
