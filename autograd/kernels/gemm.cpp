#include "autograd/kernels/gemm.h"

#include <algorithm>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/kernels/gemm_kernel.h"

namespace fovea::kernels {
namespace {

// A chunk has about this many multiply-adds: some tens of microseconds, which is worth waking a thread for.
constexpr std::int64_t chunk_work = std::int64_t{1} << 22;
// The least rows and columns of a block. Each block packs its columns of b anew, which does not pay in a thin
// one.
constexpr std::int64_t least_block = 128;
// Only sums longer than this are cut.
constexpr std::int64_t least_inner = 256;

template <class T>
MatrixView<const T> rows_of(MatrixView<const T> m, std::int64_t begin, std::int64_t count) {
  return {m.data + begin * m.row_step, std::min(count, m.rows - begin), m.columns, m.row_step, m.column_step};
}

template <class T>
MatrixView<const T> columns_of(MatrixView<const T> m, std::int64_t begin, std::int64_t count) {
  return {m.data + begin * m.column_step, m.rows, std::min(count, m.columns - begin), m.row_step,
          m.column_step};
}

std::int64_t divided_up(std::int64_t size, std::int64_t part) { return (size + part - 1) / part; }

// How a result of m x n is cut into blocks of about chunk_work: along its rows first, then along its columns.
struct Blocking {
  std::int64_t rows, columns;         // of a block
  std::int64_t down, across;          // how many blocks there are along rows and columns of one result
  std::int64_t blocks_per_chunk = 1;  // more than 1 only where a whole result is less than a chunk

  Blocking(std::int64_t m, std::int64_t n, std::int64_t inner) {
    const auto worth = [&](std::int64_t other) {
      return std::max(least_block, chunk_work / std::max<std::int64_t>(1, inner * other));
    };
    rows = std::min(m, worth(n));
    columns = std::min(n, worth(rows));
    down = divided_up(m, std::max<std::int64_t>(1, rows));
    across = divided_up(n, std::max<std::int64_t>(1, columns));
    if (down * across == 1) {
      blocks_per_chunk = std::max<std::int64_t>(1, chunk_work / std::max<std::int64_t>(1, m * n * inner));
    }
  }
};

// One product, cut along its inner size: the partial products are computed in parallel and added in order.
template <class T>
void multiply_by_inner_parts(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c,
                             std::int64_t part) {
  const std::int64_t parts = divided_up(a.columns, part);
  const std::int64_t size = a.rows * b.columns;
  thread_local std::vector<T> sums;
  sums.resize(static_cast<std::size_t>(parts * size));
  T* partial = sums.data();
  parallel_for(parts, 1, [&](std::int64_t p, std::int64_t) {
    gemm_kernel<T>(columns_of(a, p * part, part), rows_of(b, p * part, part), partial + p * size, b.columns);
  });
  std::copy_n(partial, size, c);
  for (std::int64_t p = 1; p < parts; ++p) {
    for (std::int64_t i = 0; i < size; ++i) c[i] += partial[p * size + i];
  }
}

}  // namespace

template <class T>
void gemm(std::int64_t batch, const MatrixView<const T>& a, const std::int64_t* a_offsets,
          const MatrixView<const T>& b, const std::int64_t* b_offsets, T* c) {
  const auto at = [](MatrixView<const T> m, std::int64_t offset) {
    m.data += offset;
    return m;
  };
  const std::int64_t m = a.rows, n = b.columns, inner = a.columns;
  if (m == 0 || n == 0) return;
  const Blocking blocking(m, n, inner);
  const std::int64_t blocks = blocking.down * blocking.across;

  const std::int64_t part = std::max(least_inner, chunk_work / (m * n));
  if (batch == 1 && blocks == 1 && inner > part) {
    multiply_by_inner_parts(at(a, a_offsets[0]), at(b, b_offsets[0]), c, part);
    return;
  }
  parallel_for(batch * blocks, blocking.blocks_per_chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t matrix = block / blocks;
      const std::int64_t row = block % blocks / blocking.across * blocking.rows;
      const std::int64_t column = block % blocking.across * blocking.columns;
      gemm_kernel<T>(rows_of(at(a, a_offsets[matrix]), row, blocking.rows),
                     columns_of(at(b, b_offsets[matrix]), column, blocking.columns),
                     c + (matrix * m + row) * n + column, n);
    }
  });
}

template void gemm<float>(std::int64_t, const MatrixView<const float>&, const std::int64_t*,
                          const MatrixView<const float>&, const std::int64_t*, float*);
template void gemm<double>(std::int64_t, const MatrixView<const double>&, const std::int64_t*,
                           const MatrixView<const double>&, const std::int64_t*, double*);

}  // namespace fovea::kernels
