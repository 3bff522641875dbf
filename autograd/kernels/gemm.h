#pragma once

#include <cstdint>

namespace fovea::kernels {

/// A matrix in memory: element (r, c) is data[r * row_step + c * column_step].
template <class T>
struct MatrixView {
  T* data;
  std::int64_t rows, columns;
  std::int64_t row_step, column_step;
};

template <class T>
MatrixView<T> transposed(const MatrixView<T>& m) {
  return {m.data, m.columns, m.rows, m.column_step, m.row_step};
}

/// c = a b for a batch of matrices: those of number i begin a_offsets[i] and b_offsets[i] elements after a
/// and b. a and b may have any steps and are read where they lie. The results follow one another in c,
/// row-major.
///
/// The work is cut along the rows and columns of c; where c is small and the inner size is large, it is cut
/// along the inner size instead, and the partial sums are added in order. The cuts depend on sizes alone, so
/// the result has the same bits for any number of threads.
template <class T>
void gemm(std::int64_t batch, const MatrixView<const T>& a, const std::int64_t* a_offsets,
          const MatrixView<const T>& b, const std::int64_t* b_offsets, T* c);

}  // namespace fovea::kernels
