#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"

/// JSON from files, in which nothing is trusted. Every JSON text that Fovea reads is read by these functions.
/// Their errors are ValueErrors that say where a text is at fault and repeat nothing of it.
namespace fovea::detail {

/// The largest number of lists and objects that may lie within one another.
inline constexpr std::size_t deepest_json = 100;

/// Reports the events of the parser to a reader, errors of syntax among them, until it throws or the text
/// ends. Throws: ValueError if the text nests more deeply than `deepest_json` or has a zero byte.
FOVEA_API void read_json(std::string_view text, nlohmann::json_sax<nlohmann::json>& reader);

/// The way to a value: for each object around it the key, for each list nothing.
using JsonPath = std::vector<std::optional<std::string>>;

/// Calls `take` for each text, number, boolean and null, in the order of the text, and keeps none of them:
/// for texts of any length. Throws: as above, and what `take` throws.
FOVEA_API void read_json_values(
    std::string_view text,
    const std::function<void(const JsonPath& path, const nlohmann::json& value)>& take);

/// The longest text that is parsed as a whole, in bytes.
inline constexpr std::size_t longest_parsed_json = 1'000'000;

/// Parses a short text. Throws: as above, or if it is longer than `longest_parsed_json`.
FOVEA_API nlohmann::json parse_json(std::string_view text);

}  // namespace fovea::detail
