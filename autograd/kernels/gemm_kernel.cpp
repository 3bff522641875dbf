#include "autograd/kernels/gemm_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autograd/kernels/rows.h"

// Packets are aligned by an attribute, which does not matter where their type is only named.
#pragma GCC diagnostic ignored "-Wignored-attributes"

namespace fovea::kernels {
namespace {

namespace packets = Eigen::internal;
template <class T>
using Packet = typename packets::packet_traits<T>::type;
template <class T>
constexpr std::int64_t lanes = packets::packet_traits<T>::size;

// A tile of c is kept in registers: these rows, and these packets of columns; beside it one row of b.
constexpr std::int64_t tile_rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
constexpr std::int64_t tile_packets = 3;
template <class T>
constexpr std::int64_t tile_columns = tile_packets* lanes<T>;

// So much of the inner size is added up at a time: then a panel of b, as wide as a tile, stays in the first
// cache while all rows of a pass over it.
constexpr std::int64_t panel_bytes = 24 << 10;
template <class T>
constexpr std::int64_t panel_rows = panel_bytes / (tile_columns<T> * static_cast<std::int64_t>(sizeof(T)));

// Packing a panel of b does not pay for fewer rows of a than these.
constexpr std::int64_t few_rows = 2 * tile_rows;

// `inner` rows of P packets, row_step apart.
template <class T>
struct Panel {
  const T* data;
  std::int64_t inner, row_step;
};

// Where a tile goes: it is written, or added to what is there. Of its last packet the first `last` lanes
// count.
template <class T>
struct Target {
  T* data;
  std::int64_t row_step, last;
  bool add;
};

template <class T>
void store(Packet<T> sums, T* to, bool add) {
  packets::pstoreu(to, add ? packets::padd(packets::ploadu<Packet<T>>(to), sums) : sums);
}
template <class T>
void store(Packet<T> sums, T* to, bool add, std::int64_t count) {
  Block<T> values = Block<T>::Zero();
  packets::pstoreu(values.data(), sums);
  if (add) values += load_part(to, count);
  store_part(values, to, count);
}

// GCC makes a load of each use of a packet that was loaded, which costs a third of the speed where registers
// are few. Clang does not, and takes the barrier for a store.
template <class P>
void keep_in_register([[maybe_unused]] P& packet) {
#if EIGEN_COMP_GNUC_STRICT
  EIGEN_OPTIMIZATION_BARRIER(packet);
#endif
}

// c = a b, or c += a b, for R rows of a and P packets of columns. The sums stay in registers, as all loops
// over them are unrolled; clang does so only when told.
template <class T, int R, int P>
void multiply_tile(const T* a, std::int64_t a_row_step, std::int64_t a_column_step, const Panel<T>& b,
                   const Target<T>& c) {
  Packet<T> sums[R][P];
  const T* rows[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    rows[r] = a + r * a_row_step;
    for (int p = 0; p < P; ++p) sums[r][p] = packets::pset1<Packet<T>>(T(0));
  }
  const T* of_b = b.data;
  for (std::int64_t i = 0; i < b.inner; ++i, of_b += b.row_step) {
    Packet<T> right[P];
    for (int p = 0; p < P; ++p) {
      right[p] = packets::ploadu<Packet<T>>(of_b + p * lanes<T>);
      keep_in_register(right[p]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Packet<T> left = packets::pset1<Packet<T>>(rows[r][i * a_column_step]);
      for (int p = 0; p < P; ++p) sums[r][p] = packets::pmadd(left, right[p], sums[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    T* to = c.data + r * c.row_step;
    for (int p = 0; p < P - 1; ++p) store<T>(sums[r][p], to + p * lanes<T>, c.add);
    if (c.last == lanes<T>) {
      store<T>(sums[r][P - 1], to + (P - 1) * lanes<T>, c.add);
    } else {
      store<T>(sums[r][P - 1], to + (P - 1) * lanes<T>, c.add, c.last);
    }
  }
}

template <class T>
using MultiplyTile = decltype(&multiply_tile<T, 1, 1>);

// multiply_tile for 1 to tile_rows rows and 1 to tile_packets packets.
template <class T, std::size_t... I>
constexpr auto all_tiles(std::index_sequence<I...>) {
  return std::array<MultiplyTile<T>, sizeof...(I)>{
      &multiply_tile<T, I / tile_packets + 1, I % tile_packets + 1>...};
}
template <class T>
constexpr auto tiles = all_tiles<T>(std::make_index_sequence<tile_rows * tile_packets>());

// Each row of b as one of the panel; what is left of its last packet is zero.
template <class T>
void pack_rows(const MatrixView<const T>& b, T* panel, std::int64_t width) {
  constexpr std::int64_t n = lanes<T>;
  for (std::int64_t i = 0; i < b.rows; ++i, panel += width) {
    const T* row = b.data + i * b.row_step;
    std::int64_t j = 0;
    if (b.column_step == 1) {
      for (; j + n <= b.columns; j += n) packets::pstoreu(panel + j, packets::ploadu<Packet<T>>(row + j));
      if (j < width) store_part(load_part(row + j, b.columns - j), panel + j, width - j);
    } else {
      for (; j < b.columns; ++j) panel[j] = row[j * b.column_step];
      std::fill(panel + j, panel + width, T(0));
    }
  }
}

// The same where columns of b lie in one piece and are at least as long as a packet: blocks of n by n are
// transposed in registers. The last begins earlier, where it is not a whole one.
template <class T>
void pack_columns(const MatrixView<const T>& b, T* panel, std::int64_t width) {
  constexpr std::int64_t n = lanes<T>;
  for (std::int64_t j = 0; j < width; j += n) {
    for (std::int64_t done = 0; done < b.rows; done += n) {
      const std::int64_t i = std::min(done, b.rows - n);
      packets::PacketBlock<Packet<T>, static_cast<int>(n)> block;
      for (std::int64_t k = 0; k < n; ++k) {
        block.packet[k] = j + k < b.columns ? packets::ploadu<Packet<T>>(b.data + i + (j + k) * b.column_step)
                                            : packets::pset1<Packet<T>>(T(0));
      }
      packets::ptranspose(block);
      for (std::int64_t k = 0; k < n; ++k) packets::pstoreu(panel + (i + k) * width + j, block.packet[k]);
    }
  }
}

template <class T>
void pack(const MatrixView<const T>& b, T* panel, std::int64_t width) {
  if (b.row_step == 1 && b.rows >= lanes<T>) {
    pack_columns(b, panel, width);
  } else {
    pack_rows(b, panel, width);
  }
}

// How many of the packets that are left the next tile takes. Of four, two: a tile of one has too few sums to
// keep the processor busy.
constexpr std::int64_t next_tile(std::int64_t left) {
  return left == tile_packets + 1 ? 2 : std::min(tile_packets, left);
}

// c = a b, or c += a b, for all rows of a.
template <class T>
void multiply_panel(const MatrixView<const T>& a, const Panel<T>& b, std::int64_t used, Target<T> c) {
  for (std::int64_t row = 0; row < a.rows; row += tile_rows) {
    const std::int64_t rows = std::min(tile_rows, a.rows - row);
    const auto tile = static_cast<std::size_t>((rows - 1) * tile_packets + used - 1);
    tiles<T>[tile](a.data + row * a.row_step, a.row_step, a.column_step, b, c);
    c.data += rows * c.row_step;
  }
}

// --- A matrix times a vector: Eigen's ----------------------------------------------------------------------

template <class T, int Order>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>;
template <class T, int Order>
using ConstMap = Eigen::Map<const Matrix<T, Order>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using StridedMap = Eigen::Map<const Matrix<T, Eigen::RowMajor>, Eigen::Unaligned,
                              Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

// Whether Eigen can read it in place with rows of `inner` elements side by side, `outer_step` apart and not
// overlapping.
bool lies_in_rows(std::int64_t inner, std::int64_t inner_step, std::int64_t outer, std::int64_t outer_step) {
  return (inner <= 1 || inner_step == 1) && (outer <= 1 || outer_step >= inner);
}

// Calls f with an Eigen map of the view, row-major or column-major as it lies; with a copy if it lies
// otherwise.
template <class T, class F>
void with_map(const MatrixView<const T>& m, const F& f) {
  if (lies_in_rows(m.columns, m.column_step, m.rows, m.row_step)) {
    f(ConstMap<T, Eigen::RowMajor>(m.data, m.rows, m.columns,
                                   Eigen::OuterStride<>(std::max(m.row_step, m.columns))));
  } else if (lies_in_rows(m.rows, m.row_step, m.columns, m.column_step)) {
    f(ConstMap<T, Eigen::ColMajor>(m.data, m.rows, m.columns,
                                   Eigen::OuterStride<>(std::max(m.column_step, m.rows))));
  } else {
    f(Matrix<T, Eigen::RowMajor>(StridedMap<T>(m.data, m.rows, m.columns, {m.row_step, m.column_step})));
  }
}

// Of a tile's columns all but one would be idle.
template <class T>
void multiply_vector(const MatrixView<const T>& a, const MatrixView<const T>& x, T* y, std::int64_t step,
                     bool add) {
  Eigen::Map<Eigen::VectorX<T>, Eigen::Unaligned, Eigen::InnerStride<>> result(y, a.rows,
                                                                               Eigen::InnerStride<>(step));
  const Eigen::Map<const Eigen::VectorX<T>, Eigen::Unaligned, Eigen::InnerStride<>> vector(
      x.data, x.rows, Eigen::InnerStride<>(x.row_step));
  if (!add) result.setZero();
  with_map<T>(a, [&](const auto& matrix) { result.noalias() += matrix * vector; });
}

// --- Either ------------------------------------------------------------------------------------------------

template <class T>
void multiply(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step,
              bool add) {
  if (b.columns == 1) return multiply_vector(a, b, c, row_step, add);
  alignas(64) thread_local T packed[panel_rows<T> * tile_columns<T>];
  if (a.columns == 0 && !add) {
    for (std::int64_t row = 0; row < a.rows; ++row) std::fill_n(c + row * row_step, b.columns, T(0));
  }
  for (std::int64_t i = 0; i < a.columns; i += panel_rows<T>) {
    const std::int64_t inner = std::min(panel_rows<T>, a.columns - i);
    const MatrixView<const T> left{a.data + i * a.column_step, a.rows, inner, a.row_step, a.column_step};
    for (std::int64_t j = 0; j < b.columns;) {
      const std::int64_t used = next_tile((b.columns - j + lanes<T> - 1) / lanes<T>), width = used * lanes<T>;
      const std::int64_t columns = std::min(width, b.columns - j);
      const MatrixView<const T> right{b.data + i * b.row_step + j * b.column_step, inner, columns, b.row_step,
                                      b.column_step};
      const Target<T> target{c + j, row_step, columns - (used - 1) * lanes<T>, add || i > 0};
      if (b.column_step == 1 && columns == width && a.rows <= few_rows) {
        multiply_panel<T>(left, {right.data, inner, b.row_step}, used, target);
      } else {
        pack(right, packed, width);
        multiply_panel<T>(left, {packed, inner, width}, used, target);
      }
      j += columns;
    }
  }
}

}  // namespace

template <class T>
void product(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step) {
  multiply(a, b, c, row_step, false);
}
template <class T>
void add_product(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step) {
  multiply(a, b, c, row_step, true);
}

template void product<float>(const MatrixView<const float>&, const MatrixView<const float>&, float*,
                             std::int64_t);
template void product<double>(const MatrixView<const double>&, const MatrixView<const double>&, double*,
                              std::int64_t);
template void add_product<float>(const MatrixView<const float>&, const MatrixView<const float>&, float*,
                                 std::int64_t);
template void add_product<double>(const MatrixView<const double>&, const MatrixView<const double>&, double*,
                                  std::int64_t);

}  // namespace fovea::kernels
