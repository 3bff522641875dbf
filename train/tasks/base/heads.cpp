#include "train/tasks/base/heads.h"

#include <fmt/format.h>

#include "fovea/autograd/ops.h"

namespace fovea::detail {

Head strongest_head(const std::vector<Tensor>& maps, std::int64_t query, std::int64_t key) {
  Head strongest;
  double largest = -1;
  for (std::size_t layer = 0; layer < maps.size(); ++layer) {
    for (std::int64_t head = 0; head < maps[layer].size(1); ++head) {
      const double weight = maps[layer].at({0, head, query, key});
      if (weight <= largest) continue;
      largest = weight;
      strongest = {static_cast<std::int64_t>(layer), head};
    }
  }
  return strongest;
}

Tensor map_of(const std::vector<Tensor>& maps, const Head& head) {
  return select(select(maps[static_cast<std::size_t>(head.layer)], 0, 0), 0, head.head);
}

std::string name_of(const std::vector<Tensor>& maps, const Head& head) {
  if (maps.size() == 1 && maps[0].size(1) == 1) return "the head";
  return fmt::format("head {} of layer {}", head.head, head.layer);
}

}  // namespace fovea::detail
