#pragma once

#include "fovea/autograd/base/rng.h"
#include "fovea/layers/one_head_model.h"

namespace fovea::cli {

/// Prints how well one head has learned agreement, and where it looks in the example sentence. Returns
/// whether its loss is close enough to the floor.
bool print_agreement(const OneHeadModel& model, Rng& rng);

}  // namespace fovea::cli
