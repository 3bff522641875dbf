#pragma once

#include <cstdint>

#include "fovea/autograd/tensor/tensor.h"

namespace fovea::detail {

/// Throws ValueError, naming the op, if p is not in [0, 1].
void check_dropout(const char* op, double p);

/// Dropout with a key that was drawn before: x times the factors of the kernels::DropoutMask with this key,
/// whose rows are those along the last axis. It is linear in x and its own transpose, so it is its own
/// gradient too.
Tensor dropout_rows(const Tensor& x, double p, std::uint64_t key);

}  // namespace fovea::detail
