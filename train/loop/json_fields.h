#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace fovea::detail {

/// The field of that name, which must be an integer in the range from 0 to the largest T.
/// Throws: std::exception, also if there is no such field.
template <class T>
T whole_number(const nlohmann::json& json, const std::string& name) {
  const nlohmann::json& value = json.at(name);
  // The library also calls a signed integer unsigned if it is not negative.
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<T>::max()})
    throw std::invalid_argument(
        fmt::format("{} is not a whole number from 0 to {}", name, std::numeric_limits<T>::max()));
  return value.get<T>();
}

}  // namespace fovea::detail
