#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Tokens are looked up by their bytes in a sorted list of their ids: it takes 4 bytes for a token, and no
/// file can make it slow, as it could a hash table.
namespace fovea::detail {

/// The ids in the order of their tokens' bytes; of equal tokens, the one with the lowest id is first.
std::vector<std::uint32_t> order_of(std::span<const std::string> tokens);

/// The id of the first token with these bytes, if there is one.
std::optional<std::int64_t> find_token(std::span<const std::string> tokens,
                                       std::span<const std::uint32_t> order, std::string_view bytes);

}  // namespace fovea::detail
