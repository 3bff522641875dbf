#include "train/io/safetensors_header.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "train/io/crc.h"
#include "train/io/safetensors_header_json.h"

namespace fovea::detail {
namespace {

// Sorts the tensors by their bytes, which together must cover the data, each byte once.
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
      fail<FileError>(
          "{}: tensor {} begins at byte {} of the data, {} byte {}, where the tensor before it ends", what,
          in_quotes(entry.name), entry.begin, entry.begin < covered ? "an overlap: before" : "a gap: after",
          covered);
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    fail<FileError>("{}: {} bytes follow the last tensor and belong to none", what, data_bytes - covered);
  }
}

// Takes an entry out of the metadata whose text is JSON that maps names to texts: {"head.W": "body.W"}. The
// metadata of a header have the same form, so the text is read as the metadata of a header of its own.
Metadata take_texts(const std::string& what, const char* key, SafetensorsHeader& header) {
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end()) return {};
  const std::string here = fmt::format("{}: in the metadata's {}", what, key);
  SafetensorsHeader inner;
  read_header_json(here, fmt::format("{{\"{}\":{}}}", metadata_key, found->second), inner);
  if (!inner.entries.empty()) fail<FileError>("{}: there is more than names", here);
  header.metadata.erase(found);
  return std::move(inner.metadata);
}

void take_aliases(const std::string& what, SafetensorsHeader& header) {
  std::set<std::string_view> tensors;
  for (const SafetensorsEntry& entry : header.entries) tensors.insert(entry.name);
  for (const auto& [name, original] : take_texts(what, aliases_key, header)) {
    if (name.empty() || tensors.contains(name) || !tensors.contains(original)) {
      fail<FileError>(
          "{}: in the metadata's {}: {} stands for {}: an alias must be a new name for a tensor of the file",
          what, aliases_key, in_quotes(name), in_quotes(original));
    }
    header.aliases.push_back({name, original});
  }
}

// Checksums are a text of eight hexadecimal digits for the header and for each tensor. It begins with its
// key, so that the entry is known as one of checksums where a bit of the key or of this beginning has
// changed.
constexpr std::string_view checksums_begin = "fovea.crc32";
constexpr std::size_t checksum_digits = 8;

// The checksum of a header whose own checksum is at that place, as of a header with zeros there.
std::uint32_t header_checksum(std::string text, std::size_t place) {
  text.replace(place, checksum_digits, checksum_digits, '0');
  return crc32(std::as_bytes(std::span(text)));
}

// Where the digits of the header's own checksum are in its text; npos if they are nowhere.
std::size_t place_of_checksum(std::string_view text) {
  const std::string before = fmt::format("\"{}\":\"{} ", checksums_key, checksums_begin);
  const std::size_t found = text.find(before);
  if (found == std::string_view::npos || text.size() - found < before.size() + checksum_digits)
    return std::string_view::npos;
  return found + before.size();
}

// Reads the checksums of the header and of each tensor, whose text is " 0a1b2c3d" for each.
std::optional<std::vector<std::uint32_t>> read_checksums(std::string_view text, std::size_t count) {
  if (text.size() != count * (1 + checksum_digits)) return std::nullopt;
  std::vector<std::uint32_t> checksums(count);
  for (std::uint32_t& checksum : checksums) {
    const char *begin = text.data() + 1, *end = begin + checksum_digits;
    if (text.front() != ' ' || std::from_chars(begin, end, checksum, 16).ptr != end) return std::nullopt;
    text.remove_prefix(1 + checksum_digits);
  }
  return checksums;
}

// Takes the checksums out of the metadata, and checks that of the header. A file of another program has none.
void take_checksums(const std::string& what, std::string_view text, SafetensorsHeader& header) {
  const auto found = header.metadata.find(checksums_key);
  const bool has_key = found != header.metadata.end();
  const auto has_beginning = [](const auto& entry) { return entry.second.starts_with(checksums_begin); };
  if (!has_key && std::ranges::none_of(header.metadata, has_beginning)) return;
  const std::size_t place = place_of_checksum(text);
  std::optional<std::vector<std::uint32_t>> checksums;
  if (has_key && has_beginning(*found) && place != std::string_view::npos) {
    checksums = read_checksums(std::string_view(found->second).substr(checksums_begin.size()),
                               header.entries.size() + 1);
  }
  if (!checksums || header_checksum(std::string(text), place) != checksums->front()) {
    fail<FileError>(
        "{}: its header does not match its checksum: the file is damaged, or another program has changed it "
        "and kept the metadata key {}",
        what, checksums_key);
  }
  for (std::size_t i = 0; i < header.entries.size(); ++i) header.entries[i].crc32 = (*checksums)[i + 1];
  header.metadata.erase(found);
}

// The text of the checksums, with zeros for that of the header, which is not known yet; empty if the tensors
// have none.
std::string checksums_text(const SafetensorsHeader& header) {
  std::string text = fmt::format("{} {:0{}}", checksums_begin, 0, checksum_digits);
  for (const SafetensorsEntry& entry : header.entries) {
    if (!entry.crc32) return "";
    text += fmt::format(" {:0{}x}", *entry.crc32, checksum_digits);
  }
  return text;
}

void check_name(std::set<std::string>& names, const std::string& name) {
  if (name.empty()) fail<ValueError>("[save_safetensors] a tensor has no name: give each a name");
  if (name == metadata_key)
    fail<ValueError>("[save_safetensors] a tensor has the name {}, which the format reserves", metadata_key);
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
      fail<ValueError>("[save_safetensors] {} is tied to {}, but the state has no tensor {}", in_quotes(name),
                       in_quotes(original), in_quotes(original));
    }
  }
  for (const char* key : {aliases_key, settings_key, checksums_key}) {
    if (header.metadata.contains(key)) {
      fail<ValueError>("[save_safetensors] the metadata key {} is reserved for what a state holds", key);
    }
  }
}

}  // namespace

SafetensorsHeader parse_header(const std::string& what, std::string_view text, std::uint64_t data_bytes) {
  SafetensorsHeader header;
  read_header_json(what, text, header);
  check_ranges(what, header.entries, data_bytes);
  take_checksums(what, text, header);
  take_aliases(what, header);
  header.settings = take_texts(what, settings_key, header);
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
    if (!header.settings.empty()) metadata[settings_key] = json(header.settings).dump();
    if (std::string checksums = checksums_text(header); !checksums.empty())
      metadata[checksums_key] = std::move(checksums);
    if (!metadata.empty()) add(metadata_key, metadata);
    for (const SafetensorsEntry& entry : header.entries) {
      add(entry.name, {{"dtype", entry.dtype},
                       {"shape", std::vector(entry.shape.begin(), entry.shape.end())},
                       {"data_offsets", {entry.begin, entry.end}}});
    }
  } catch (const json::type_error&) {
    fail<ValueError>("[save_safetensors] a tensor's name or a text of the metadata is not UTF-8");
  }
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (const std::size_t place = place_of_checksum(text); place != std::string::npos)
    text.replace(place, checksum_digits,
                 fmt::format("{:0{}x}", header_checksum(text, place), checksum_digits));
  return text;
}

}  // namespace fovea::detail
