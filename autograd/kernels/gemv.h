#pragma once

#include "autograd/kernels/gemm.h"

namespace fovea::kernels {

/// y = a x, or y += a x where `add` is set, on the calling thread. x is a matrix of one column; elements of y
/// are y_step apart. a may have any steps.
template <class T>
void gemv(const MatrixView<const T>& a, const MatrixView<const T>& x, T* y, std::int64_t y_step, bool add);

}  // namespace fovea::kernels
