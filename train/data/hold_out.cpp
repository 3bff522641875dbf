#include "fovea/train/data/hold_out.h"

#include "autograd/base/fail.h"
#include "fovea/autograd/base/rng.h"

namespace fovea {

bool is_held_out(std::span<const std::int64_t> ids, double share) {
  if (!(share > 0 && share < 1)) {
    fail<ValueError>("[is_held_out] the share to hold out is {}: it must be above 0 and below 1", share);
  }
  // Each id is encrypted, and the hash of the ids before it is the key. This mixes all bits of all ids.
  std::uint64_t hash = ids.size();
  for (const std::int64_t id : ids) {
    const auto block = philox(hash, static_cast<std::uint64_t>(id));
    hash = std::uint64_t{block[1]} << 32 | block[0];
  }
  return static_cast<double>(hash >> 11) * 0x1p-53 < share;
}

}  // namespace fovea
