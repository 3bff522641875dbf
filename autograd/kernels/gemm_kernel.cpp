#include "autograd/kernels/gemm_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autograd/kernels/gemv.h"
#include "autograd/kernels/packet.h"
#include "autograd/kernels/rows.h"

// The product c = a b in two levels. A *tile* of c, some rows and columns, stays in registers while the inner
// size is summed over; a *panel* of b, as wide as a tile, stays in the first-level cache while all rows of a
// pass over it.
namespace fovea::kernels {
namespace {

// A tile has this many rows, and columns for this many packets; one row of b stands in registers beside it.
constexpr std::int64_t tile_rows = vector_registers >= 32 ? 8 : 4;
constexpr std::int64_t tile_packets = 3;
template <class T>
constexpr std::int64_t tile_columns = tile_packets* packet_size<T>;

constexpr std::int64_t panel_bytes = 24 << 10;
template <class T>
constexpr std::int64_t panel_rows = panel_bytes / (tile_columns<T> * static_cast<std::int64_t>(sizeof(T)));

// With no more rows of a than this, copying a panel of b costs more than it saves.
constexpr std::int64_t few_rows = 2 * tile_rows;

// `inner` rows of b, row_step apart, of the width of a tile.
template <class T>
struct Panel {
  const T* data;
  std::int64_t inner, row_step;
};

// Where a tile is written, or added where `add` is set. Only the first `last` elements of its last packet are
// part of c.
template <class T>
struct Target {
  T* data;
  std::int64_t row_step, last;
  bool add;
};

// --- Tiles -------------------------------------------------------------------------------------------------

template <class T>
void store(Packet<T> sums, T* to, bool add_to_it) {
  store_packet<T>(add_to_it ? add(load_packet(to), sums) : sums, to);
}
template <class T>
void store(Packet<T> sums, T* to, bool add_to_it, std::int64_t count) {
  Block<T> values = Block<T>::Zero();
  store_packet<T>(sums, values.data());
  if (add_to_it) values += load_part(to, count);
  store_part(values, to, count);
}

// The product of R rows of a and a panel of P packets. All loops over the sums are unrolled, so that these
// stay in registers; clang unrolls them only when told.
template <class T, int R, int P>
void multiply_tile(const T* a, std::int64_t a_row_step, std::int64_t a_column_step, const Panel<T>& b,
                   const Target<T>& c) {
  Packet<T> sums[R][P];
  const T* rows[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    rows[r] = a + r * a_row_step;
    for (int p = 0; p < P; ++p) sums[r][p] = broadcast(T(0));
  }
  const T* of_b = b.data;
  for (std::int64_t i = 0; i < b.inner; ++i, of_b += b.row_step) {
    Packet<T> right[P];
    for (int p = 0; p < P; ++p) {
      right[p] = load_packet(of_b + p * packet_size<T>);
      keep_in_register(right[p]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Packet<T> left = broadcast(rows[r][i * a_column_step]);
      for (int p = 0; p < P; ++p) sums[r][p] = multiply_add(left, right[p], sums[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    T* to = c.data + r * c.row_step;
    for (int p = 0; p < P - 1; ++p) store<T>(sums[r][p], to + p * packet_size<T>, c.add);
    if (c.last == packet_size<T>) {
      store<T>(sums[r][P - 1], to + (P - 1) * packet_size<T>, c.add);
    } else {
      store<T>(sums[r][P - 1], to + (P - 1) * packet_size<T>, c.add, c.last);
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

// The product of all rows of a and a panel of so many packets.
template <class T>
void multiply_panel(const MatrixView<const T>& a, const Panel<T>& b, std::int64_t panel_packets,
                    Target<T> c) {
  for (std::int64_t row = 0; row < a.rows; row += tile_rows) {
    const std::int64_t rows = std::min(tile_rows, a.rows - row);
    const auto tile = static_cast<std::size_t>((rows - 1) * tile_packets + panel_packets - 1);
    tiles<T>[tile](a.data + row * a.row_step, a.row_step, a.column_step, b, c);
    c.data += rows * c.row_step;
  }
}

// --- Panels ------------------------------------------------------------------------------------------------

// Copies b into a panel of this width, row by row. Columns that b does not have are zeros.
template <class T>
void pack_rows(const MatrixView<const T>& b, T* panel, std::int64_t width) {
  constexpr std::int64_t n = packet_size<T>;
  for (std::int64_t i = 0; i < b.rows; ++i, panel += width) {
    const T* row = b.data + i * b.row_step;
    std::int64_t j = 0;
    if (b.column_step == 1) {
      for (; j + n <= b.columns; j += n) store_packet<T>(load_packet(row + j), panel + j);
      if (j < width) store_part(load_part(row + j, b.columns - j), panel + j, width - j);
    } else {
      for (; j < b.columns; ++j) panel[j] = row[j * b.column_step];
      std::fill(panel + j, panel + width, T(0));
    }
  }
}

// The same for b whose columns are contiguous and at least as long as a packet: squares of n by n elements
// are transposed in registers. If n does not divide the number of rows, the last square overlaps the one
// before.
template <class T>
void pack_columns(const MatrixView<const T>& b, T* panel, std::int64_t width) {
  constexpr std::int64_t n = packet_size<T>;
  for (std::int64_t j = 0; j < width; j += n) {
    for (std::int64_t done = 0; done < b.rows; done += n) {
      const std::int64_t i = std::min(done, b.rows - n);
      PacketSquare<T> square;
      for (std::int64_t k = 0; k < n; ++k) {
        square.packet[k] =
            j + k < b.columns ? load_packet(b.data + i + (j + k) * b.column_step) : broadcast(T(0));
      }
      transpose<T>(square);
      for (std::int64_t k = 0; k < n; ++k) store_packet<T>(square.packet[k], panel + (i + k) * width + j);
    }
  }
}

template <class T>
void pack(const MatrixView<const T>& b, T* panel, std::int64_t width) {
  if (b.row_step == 1 && b.rows >= packet_size<T>) {
    pack_columns(b, panel, width);
  } else {
    pack_rows(b, panel, width);
  }
}

// How many packets wide the next panel is, of those that are left. Four are cut into two and two: a tile one
// packet wide has too few sums to keep the processor busy.
constexpr std::int64_t next_panel(std::int64_t packets_left) {
  return packets_left == tile_packets + 1 ? 2 : std::min(tile_packets, packets_left);
}

// --- The whole product -------------------------------------------------------------------------------------

template <class T>
void multiply(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step,
              bool add) {
  if (b.columns == 1) return gemv(a, b, c, row_step, add);  // all but one column of a tile would be idle
  alignas(64) thread_local T packed[panel_rows<T> * tile_columns<T>];
  if (a.columns == 0 && !add) {
    for (std::int64_t row = 0; row < a.rows; ++row) std::fill_n(c + row * row_step, b.columns, T(0));
  }
  for (std::int64_t i = 0; i < a.columns; i += panel_rows<T>) {
    const std::int64_t inner = std::min(panel_rows<T>, a.columns - i);
    const MatrixView<const T> left{a.data + i * a.column_step, a.rows, inner, a.row_step, a.column_step};
    for (std::int64_t j = 0; j < b.columns;) {
      const std::int64_t packets = next_panel((b.columns - j + packet_size<T> - 1) / packet_size<T>);
      const std::int64_t width = packets * packet_size<T>, columns = std::min(width, b.columns - j);
      const MatrixView<const T> right{b.data + i * b.row_step + j * b.column_step, inner, columns, b.row_step,
                                      b.column_step};
      const std::int64_t last = columns - (packets - 1) * packet_size<T>;
      const Target<T> target{c + j, row_step, last, add || i > 0};
      if (b.column_step == 1 && columns == width && a.rows <= few_rows) {
        multiply_panel<T>(left, {right.data, inner, b.row_step}, packets, target);
      } else {
        pack(right, packed, width);
        multiply_panel<T>(left, {packed, inner, width}, packets, target);
      }
      j += columns;
    }
  }
}

}  // namespace

template <class T>
void gemm_kernel(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c, std::int64_t row_step) {
  multiply(a, b, c, row_step, false);
}
template <class T>
void gemm_kernel_add(const MatrixView<const T>& a, const MatrixView<const T>& b, T* c,
                     std::int64_t row_step) {
  multiply(a, b, c, row_step, true);
}

template void gemm_kernel<float>(const MatrixView<const float>&, const MatrixView<const float>&, float*,
                                 std::int64_t);
template void gemm_kernel<double>(const MatrixView<const double>&, const MatrixView<const double>&, double*,
                                  std::int64_t);
template void gemm_kernel_add<float>(const MatrixView<const float>&, const MatrixView<const float>&, float*,
                                     std::int64_t);
template void gemm_kernel_add<double>(const MatrixView<const double>&, const MatrixView<const double>&,
                                      double*, std::int64_t);

}  // namespace fovea::kernels
