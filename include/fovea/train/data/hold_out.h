#pragma once

#include <cstdint>
#include <span>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// Whether an instance is among the share of all instances that training never sees. It is a function of the
/// ids alone, a hash, so that it needs no list and is the same in every run, whatever the seed.
/// Throws: ValueError unless 0 < share < 1.
FOVEA_API bool is_held_out(std::span<const std::int64_t> ids, double share);

}  // namespace fovea
