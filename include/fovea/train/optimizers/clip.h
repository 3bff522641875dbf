#pragma once

#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/named_tensor.h"

namespace fovea {

/// Scales all gradients by limit / norm where their common norm, the root of the sum of all squares, exceeds
/// the limit. Returns the norm as it was. Clipped gradients are new tensors: other handles keep the old ones.
///
/// The norm is computed in f64 and scaled, so that it neither overflows nor depends on `threads()`.
/// Parameters without a gradient count for nothing. Throws: ValueError if the limit is negative or NaN;
/// NonFiniteError, naming the first parameter whose gradient has a NaN or infinity. No gradient has changed
/// then.
FOVEA_API double clip_gradients(const std::vector<NamedTensor>& parameters, double limit);

}  // namespace fovea
