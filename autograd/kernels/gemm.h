#pragma once

#include <cstdint>

namespace fovea::kernels {

/// A matrix in memory: element (r, c) at data[r * row_step + c * column_step].
template <class T>
struct MatrixView {
  T* data;
  std::int64_t rows, columns;
  std::int64_t row_step, column_step;
};

/// c = a b for `batch` triples, triple i at the given offsets. c is row-major with rows next to each other; a
/// and b may lie in any way, and are read in place.
///
/// Cut into tiles of c, or, where c is small and the inner size large, along the inner size, the parts added
/// in order: the same bits for any number of threads.
template <class T>
void gemm(std::int64_t batch, const MatrixView<const T>& a, const std::int64_t* a_offsets,
          const MatrixView<const T>& b, const std::int64_t* b_offsets, T* c);

}  // namespace fovea::kernels
