#include "train/io/safetensors_header.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
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
  for (const char* key : {aliases_key, settings_key}) {
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
    if (!metadata.empty()) add(metadata_key, metadata);
    for (const auto& [name, dtype, shape, begin, end] : header.entries) {
      add(name, {{"dtype", dtype},
                 {"shape", std::vector(shape.begin(), shape.end())},
                 {"data_offsets", {begin, end}}});
    }
  } catch (const json::type_error&) {
    fail<ValueError>("[save_safetensors] a tensor's name or a text of the metadata is not UTF-8");
  }
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace fovea::detail
