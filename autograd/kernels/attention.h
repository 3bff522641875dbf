#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "autograd/kernels/dropout.h"

// Attention in tiles: a block of queries meets one tile of keys after another, with a running maximum and sum
// of each row's softmax (Dao et al. 2022; Dao 2023 for the order of loops).
namespace fovea::kernels {

/// H query heads share Hk key heads.
struct AttentionSizes {
  std::int64_t batch = 0, heads = 0, key_heads = 0;
  std::int64_t queries = 0, keys = 0;
  std::int64_t head_size = 0, value_size = 0;

  std::int64_t group() const { return key_heads == 0 ? 1 : heads / key_heads; }
  /// Entries of a bias by distance.
  std::int64_t distances() const { return queries + keys > 0 ? queries + keys - 1 : 0; }
};

}  // namespace fovea::kernels
