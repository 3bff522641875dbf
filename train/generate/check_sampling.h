#pragma once

#include "fovea/train/generate/sampling.h"

namespace fovea::detail {

/// Throws: ValueError for an option outside its range.
void check_sampling(const Sampling& sampling);

}  // namespace fovea::detail
