#include "train/tokenizers/token_order.h"

#include <algorithm>
#include <numeric>

namespace fovea::detail {

std::vector<std::uint32_t> order_of(std::span<const std::string> tokens) {
  std::vector<std::uint32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const int bytes = tokens[a].compare(tokens[b]);
    return bytes != 0 ? bytes < 0 : a < b;
  });
  return order;
}

std::optional<std::int64_t> find_token(std::span<const std::string> tokens,
                                       std::span<const std::uint32_t> order, std::string_view bytes) {
  const auto token_of = [&](std::uint32_t id) { return std::string_view(tokens[id]); };
  const auto found = std::ranges::lower_bound(order, bytes, {}, token_of);
  if (found == order.end() || token_of(*found) != bytes) return std::nullopt;
  return *found;
}

}  // namespace fovea::detail
