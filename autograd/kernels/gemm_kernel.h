#pragma once

#include "autograd/kernels/gemm.h"

namespace fovea::kernels {

/// c = a b, on the calling thread; rows of c are row_step apart, and a and b may have any steps.
///
/// Each element of c is summed in one order. So a row of a gives the same bits alone and among other rows,
/// unless b is a single column.
template <class T>
void gemm_kernel(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step);

/// The same, but c += a b.
template <class T>
void gemm_kernel_add(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step);

}  // namespace fovea::kernels
