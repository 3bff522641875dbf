#pragma once

#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/named_tensor.h"

namespace fovea {

/// Clips gradients by their global norm (Pascanu et al. 2013): if the root of the sum of all squares is above
/// `max_norm`, every gradient is multiplied by max_norm / norm. Returns the norm before clipping.
///
/// Clipped gradients are new tensors, so other handles to the old ones see no change. Parameters without a
/// gradient are passed over. The norm is computed in f64, rescaled where squares would overflow, and does not
/// depend on `threads()`.
/// Throws: ValueError if max_norm is negative or NaN; NonFiniteError, which names the first parameter whose
/// gradient has a NaN or infinity. No gradient has then changed.
FOVEA_API double clip_gradients(const std::vector<NamedTensor>& parameters, double max_norm);

}  // namespace fovea
