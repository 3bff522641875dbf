#pragma once

#include <cstdint>
#include <span>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// Whether an instance of a task is held out, so that training never sees it. A hash of its ids decides, so
/// there is no list of held-out instances, and they are the same in every run, whatever its seed. Throws:
/// ValueError unless 0 < share < 1.
FOVEA_API bool is_held_out(std::span<const std::int64_t> ids, double share);

}  // namespace fovea
