#pragma once

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/attention.h"
#include "autograd/kernels/gemm_kernel.h"
#include "autograd/kernels/rows.h"
#include "autograd/kernels/vector_math.h"

namespace fovea::kernels {

/// Queries that are taken together, and keys that they meet at a time: the scores of a tile stay in cache.
inline constexpr std::int64_t block_rows = 64;
inline constexpr std::int64_t tile_keys = 128;
static_assert(tile_keys % DropoutMask::group_size == 0);

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A matrix of Eigen's, or a part of one, also transposed, as `gemm_kernel` takes it.
template <class M>
MatrixView<const typename M::Scalar> view_of(const M& m) {
  const std::int64_t row_step = M::IsRowMajor ? m.outerStride() : m.innerStride();
  return {m.data(), m.rows(), m.cols(), row_step, M::IsRowMajor ? m.innerStride() : m.outerStride()};
}

/// A block of queries of one head and the tile of keys that it meets: their scores, masked. Forward and
/// backward pass are loops over these.
///
/// Rows of a tile are padded to whole blocks of elements; the padding is hidden.
template <class T>
class AttentionTile {
 public:
  explicit AttentionTile(const AttentionInputs<T>& in)
      : in_(in),
        queries_(block_rows, in.sizes.head_size),
        keys_(tile_keys, in.sizes.head_size),
        values_(tile_keys, in.sizes.value_size),
        scores_(block_rows, tile_keys),
        slopes_(in.softcap > 0 ? block_rows : 0, tile_keys),
        ranges_(block_rows),
        seen_(tile_keys) {}

  /// Goes to a head and a block of its queries.
  void go_to(std::int64_t batch, std::int64_t head, std::int64_t block) {
    batch_ = batch;
    head_ = head;
    first_ = block * block_rows;
    rows_ = std::min(block_rows, in_.sizes.queries - first_);
    for (std::int64_t i = 0; i < rows_; ++i) range(i) = in_.mask.range(in_.sizes, batch, first_ + i);
    for (std::int64_t i = 0; i < rows_; ++i) copy_query(in_.q, static_cast<T>(in_.scale), queries_, i);
  }

  /// Calls f for every tile in which the block has something to see, with its scores computed.
  template <class F>
  void for_each_tile(const F& f) {
    std::int64_t begin = in_.sizes.keys, end = 0;
    for (std::int64_t i = 0; i < rows_; ++i) {
      if (range(i).empty()) continue;
      begin = std::min(begin, range(i).begin);
      end = std::max(end, range(i).end);
    }
    // Tiles begin at multiples of their size, whoever meets them.
    for (tile_ = begin / tile_keys * tile_keys; tile_ < end; tile_ += tile_keys) {
      count_ = std::min(tile_keys, end - tile_);
      width_ = (count_ + block_size - 1) / block_size * block_size;
      if (!find_seen(begin)) continue;
      copy_keys();
      compute_scores();
      f();
    }
  }

  /// Row i of an array for the queries: zeros where the query sees nothing, whatever stands there.
  void copy_query(const View4<T>& from, T factor, RowMajor<T>& to, std::int64_t i) const {
    if (sees_something(i)) {
      copy_row(from, head_, first_ + i, factor, to, i);
    } else {
      to.row(i).setZero();
    }
  }

  /// Whether query i of the block sees any key.
  bool sees_something(std::int64_t i) const {
    const KeyRange keys = ranges_[static_cast<std::size_t>(i)];
    if (keys.empty() || !in_.mask.seen) return !keys.empty();
    const std::uint8_t* seen = in_.mask.seen.row(batch_, head_, first_ + i);
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      if (seen[j * in_.mask.seen.step()]) return true;
    }
    return false;
  }

  std::int64_t rows() const { return rows_; }    ///< of the block
  std::int64_t width() const { return width_; }  ///< of the tile, padded
  std::int64_t count() const { return count_; }  ///< of its keys
  std::int64_t first() const { return first_; }  ///< query of the block
  std::int64_t tile() const { return tile_; }    ///< its first key
  std::int64_t key_head() const { return head_ / in_.sizes.group(); }
  /// The number of row i among all rows (B, H, Tq).
  std::int64_t row_number(std::int64_t i) const {
    return (batch_ * in_.sizes.heads + head_) * in_.sizes.queries + first_ + i;
  }
  T* scores(std::int64_t i) { return &scores_(i, 0); }
  T largest(std::int64_t i) const { return largest_[static_cast<std::size_t>(i)]; }
  /// d score / d (scale q k^T), under a softcap.
  const T* slopes(std::int64_t i) const { return &slopes_(i, 0); }

  auto queries() { return queries_.topRows(rows_); }  ///< times scale
  auto keys() { return keys_.topRows(width_); }
  auto values() { return values_.topRows(width_); }
  auto scores() { return scores_.topLeftCorner(rows_, width_); }

  /// Calls f(c, factor) for the blocks of elements c, ... of a row, with what dropout multiplies them by.
  template <class F>
  void for_each_dropped(std::int64_t i, const F& f) const {
    DropoutMask::Factors<T> factors;
    for (std::int64_t c = 0; c < width_; c += block_size) {
      const std::int64_t within = c % DropoutMask::group_size;
      if (within == 0)
        factors = in_.dropout->template factors<T>(row_number(i), (tile_ + c) / DropoutMask::group_size);
      f(c, factors[static_cast<std::size_t>(within / block_size)]);
    }
  }

 private:
  static constexpr T hidden = -std::numeric_limits<T>::infinity();

  KeyRange& range(std::int64_t i) { return ranges_[static_cast<std::size_t>(i)]; }

  void copy_row(const View4<T>& from, std::int64_t head, std::int64_t at, T factor, RowMajor<T>& to,
                std::int64_t row) const {
    const T* in = from.row(batch_, head, at);
    T* out = to.data() + row * to.cols();
    if (from.step() == 1) {
      for (std::int64_t d = 0; d < to.cols(); ++d) out[d] = in[d] * factor;
    } else {
      for (std::int64_t d = 0; d < to.cols(); ++d) out[d] = in[d * from.step()] * factor;
    }
  }

  // Which keys of the tile some query of the block sees; false if there is none. The ranges of a block have
  // no gaps between them.
  bool find_seen(std::int64_t begin) {
    std::fill(seen_.begin(), seen_.end(), std::uint8_t{0});
    if (!in_.mask.seen) {
      const std::int64_t from = std::max<std::int64_t>(0, begin - tile_);
      std::fill(seen_.begin() + from, seen_.begin() + count_, std::uint8_t{1});
      return from < count_;
    }
    bool any = false;
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::uint8_t* seen = in_.mask.seen.row(batch_, head_, first_ + i) + tile_ * in_.mask.seen.step();
      const std::int64_t end = std::min(count_, range(i).end - tile_);
      for (std::int64_t c = std::max<std::int64_t>(0, range(i).begin - tile_); c < end; ++c) {
        if (!seen[c * in_.mask.seen.step()]) continue;
        seen_[static_cast<std::size_t>(c)] = 1;
        any = true;
      }
    }
    return any;
  }

  // Zeros in place of keys and values that the block does not see: in products, NaN times a weight of 0 would
  // be NaN.
  void copy_keys() {
    for (std::int64_t c = 0; c < width_; ++c) {
      if (c < count_ && seen_[static_cast<std::size_t>(c)]) {
        copy_row(in_.k, key_head(), tile_ + c, T(1), keys_, c);
        copy_row(in_.v, key_head(), tile_ + c, T(1), values_, c);
      } else {
        keys_.row(c).setZero();
        values_.row(c).setZero();
      }
    }
  }

  void compute_scores() {
    gemm_kernel(view_of(queries()), view_of(keys().transpose()), scores_.data(), scores_.cols());
    for (std::int64_t i = 0; i < rows_; ++i) largest_[static_cast<std::size_t>(i)] = finish_row(i);
  }

  // Softcap, biases and mask; the largest score of the row.
  T finish_row(std::int64_t i) {
    const std::int64_t query = first_ + i;
    const T* bias = in_.bias ? in_.bias.row(batch_, head_, query) : nullptr;
    const T* relative_bias = in_.relative_bias ? relative_row(query) : nullptr;
    Block<T> top = Block<T>::Constant(hidden);
    for (std::int64_t c = 0; c < width_; c += block_size) {
      const std::int64_t key = tile_ + c, present = std::min<std::int64_t>(block_size, in_.sizes.keys - key);
      Block<T> s = load_part(scores(i) + c, Whole());
      if (in_.softcap > 0) s = bend(s, &slopes_(i, c));
      if (bias) s += load(bias + key * in_.bias.step(), in_.bias.step(), present);
      if (relative_bias) s += load(relative_bias + key, 1, present);
      s = hide(s, i, key);
      top = top.max(s);
      store_part(s, scores(i) + c, Whole());
    }
    return largest_lane(top);
  }

  // The bias by distance of a query: that for key j at place j.
  const T* relative_row(std::int64_t query) const {
    const std::int64_t head = in_.relative_heads == 1 ? 0 : head_;
    return in_.relative_bias + head * in_.sizes.distances() + in_.sizes.queries - 1 - query;
  }

  Block<T> bend(const Block<T>& s, T* slope) const {
    const T cap = static_cast<T>(in_.softcap);
    const Block<T> bent = kernels::tanh<T>(s / cap);
    store_part<T>(1 - bent * bent, slope, Whole());
    return bent * cap;
  }

  Block<T> hide(Block<T> s, std::int64_t i, std::int64_t key) const {
    const KeyRange keys = ranges_[static_cast<std::size_t>(i)];
    if (key < keys.begin || key + block_size > keys.end) {
      const auto lane = [&](std::int64_t j) {
        return static_cast<int>(std::clamp<std::int64_t>(j - key, 0, block_size));
      };
      const int begin = lane(keys.begin), end = lane(keys.end);
      for_each_lane([&](int l) { s[l] = ((l >= begin) & (l < end)) ? s[l] : hidden; });
    }
    if (in_.mask.seen) {
      const std::uint8_t* seen = in_.mask.seen.row(batch_, head_, first_ + i) + key * in_.mask.seen.step();
      const std::int64_t present = std::min<std::int64_t>(block_size, in_.sizes.keys - key);
      for (std::int64_t l = 0; l < present; ++l) {
        if (!seen[l * in_.mask.seen.step()]) s[l] = hidden;
      }
    }
    return s;
  }

  const AttentionInputs<T>& in_;
  RowMajor<T> queries_, keys_, values_, scores_, slopes_;
  std::vector<KeyRange> ranges_;       // of the block's queries
  std::vector<std::uint8_t> seen_;     // of the tile's keys, by any of them
  std::array<T, block_rows> largest_;  // score of each row
  std::int64_t batch_ = 0, head_ = 0, first_ = 0, rows_ = 0;
  std::int64_t tile_ = 0, count_ = 0, width_ = 0;
};

inline std::int64_t blocks_of(const AttentionSizes& sizes) {
  return (sizes.queries + block_rows - 1) / block_rows;
}

/// How many pieces of work, each of so many blocks of queries, one thread takes at a time: some hundreds of
/// microseconds.
inline std::int64_t pieces_at_a_time(const AttentionSizes& n, std::int64_t blocks) {
  const std::int64_t work = blocks * std::min(block_rows, n.queries) * n.keys * (n.head_size + n.value_size);
  return std::max<std::int64_t>(1, (std::int64_t{1} << 22) / std::max<std::int64_t>(1, work));
}

}  // namespace fovea::kernels
