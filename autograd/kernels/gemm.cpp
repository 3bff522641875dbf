#include "autograd/kernels/gemm.h"

#include <algorithm>
#include <vector>

#include "autograd/base/parallel.h"
#include "autograd/kernels/gemm_kernel.h"

namespace fovea::kernels {
namespace {

// Multiply-adds that are worth a thread's while: some tens of microseconds.
constexpr std::int64_t chunk_work = std::int64_t{1} << 22;
// Each tile packs its columns of b anew, which pays only if it is not too thin.
constexpr std::int64_t least_tile = 128;
// Sums longer than this may be cut.
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

std::int64_t pieces(std::int64_t size, std::int64_t piece) { return (size + piece - 1) / piece; }

// How a result of `rows` x `columns` is cut into tiles of about chunk_work: along rows first.
struct Tiling {
  std::int64_t rows, columns;        // of a tile
  std::int64_t down, across;         // tiles of one result
  std::int64_t tiles_per_chunk = 1;  // more than 1 only where a whole result is less than a chunk

  Tiling(std::int64_t m, std::int64_t n, std::int64_t inner) {
    const auto worth = [&](std::int64_t other) {
      return std::max(least_tile, chunk_work / std::max<std::int64_t>(1, inner * other));
    };
    rows = std::min(m, worth(n));
    columns = std::min(n, worth(rows));
    down = pieces(m, std::max<std::int64_t>(1, rows));
    across = pieces(n, std::max<std::int64_t>(1, columns));
    if (down * across == 1)
      tiles_per_chunk = std::max<std::int64_t>(1, chunk_work / std::max<std::int64_t>(1, m * n * inner));
  }
};

// One product along its inner size: parts are made side by side and added in order.
template <class T>
void multiply_by_inner_parts(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c,
                             std::int64_t part) {
  const std::int64_t parts = pieces(a.columns, part);
  const std::int64_t size = a.rows * b.columns;
  thread_local std::vector<T> sums;
  sums.resize(static_cast<std::size_t>(parts * size));
  T* partial = sums.data();
  parallel_for(parts, 1, [&](std::int64_t p, std::int64_t) {
    product<T>(columns_of(a, p * part, part), rows_of(b, p * part, part), partial + p * size, b.columns);
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
  const Tiling tiling(m, n, inner);
  const std::int64_t tiles = tiling.down * tiling.across;

  const std::int64_t part = std::max(least_inner, chunk_work / (m * n));
  if (batch == 1 && tiles == 1 && inner > part) {
    multiply_by_inner_parts(at(a, a_offsets[0]), at(b, b_offsets[0]), c, part);
    return;
  }
  parallel_for(batch * tiles, tiling.tiles_per_chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t matrix = tile / tiles;
      const std::int64_t row = tile % tiles / tiling.across * tiling.rows;
      const std::int64_t column = tile % tiling.across * tiling.columns;
      product<T>(rows_of(at(a, a_offsets[matrix]), row, tiling.rows),
                 columns_of(at(b, b_offsets[matrix]), column, tiling.columns),
                 c + (matrix * m + row) * n + column, n);
    }
  });
}

template void gemm<float>(std::int64_t, const MatrixView<const float>&, const std::int64_t*,
                          const MatrixView<const float>&, const std::int64_t*, float*);
template void gemm<double>(std::int64_t, const MatrixView<const double>&, const std::int64_t*,
                           const MatrixView<const double>&, const std::int64_t*, double*);

}  // namespace fovea::kernels
