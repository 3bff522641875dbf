#pragma once

#include "autograd/kernels/gemm.h"

namespace fovea::kernels {

/// c = a b on the thread that calls, or c += a b; rows of c are row_step apart. a and b may lie in any way.
///
/// Each element of c is summed in one order, so that a row of a gives the same bits alone and among others,
/// unless b is a single column.
template <class T>
void product(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step);
template <class T>
void add_product(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step);

}  // namespace fovea::kernels
