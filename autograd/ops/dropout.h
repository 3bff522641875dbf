#pragma once

#include <cstdint>

#include "fovea/autograd/tensor/tensor.h"

namespace fovea::detail {

/// Throws: ValueError, naming the op, if p is not in [0, 1].
void check_dropout(const char* op, double p);

/// Dropout with a key that has been drawn; element (row, j), rows taken along the last axis, is kept or not
/// as kernels::DropoutMask says. Linear in x, and its own transpose.
Tensor dropout_rows(const Tensor& x, double p, std::uint64_t key);

}  // namespace fovea::detail
