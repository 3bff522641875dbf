#pragma once

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <vector>

#include "autograd/kernels/attention.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/rows.h"

// The scores of one block of queries with one block of keys, and their gradient: what the loops of
// attention's forward and backward pass are made of.
namespace fovea::kernels {

/// The rows and columns of a block of scores. They, and the queries, keys and values that they come from,
/// stay in the second-level cache.
inline constexpr std::int64_t query_block = 64, key_block = 128;
static_assert(key_block % DropoutMask::group_size == 0);

/// The place of row i in a std::array.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline std::int64_t query_blocks(const AttentionSizes& sizes) {
  return (sizes.queries + query_block - 1) / query_block;
}

/// How many items of work, each of so many blocks of queries, make a chunk for one thread: some hundreds of
/// microseconds.
inline std::int64_t attention_chunk(const AttentionSizes& n, std::int64_t blocks_per_item) {
  const std::int64_t work =
      blocks_per_item * std::min(query_block, n.queries) * n.keys * (n.head_size + n.value_size);
  return std::max<std::int64_t>(1, (std::int64_t{1} << 22) / std::max<std::int64_t>(1, work));
}

/// A row-major matrix of which the upper left part is in use.
template <class T>
using BlockMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
T* row_of(BlockMatrix<T>& m, std::int64_t i) {
  return m.data() + i * m.cols();
}
template <class T>
const T* row_of(const BlockMatrix<T>& m, std::int64_t i) {
  return m.data() + i * m.cols();
}
template <class T>
MatrixView<const T> upper_left(const BlockMatrix<T>& m, std::int64_t rows, std::int64_t columns) {
  return {m.data(), rows, columns, m.cols(), 1};
}
template <class T>
MatrixView<const T> upper_rows(const BlockMatrix<T>& m, std::int64_t rows) {
  return upper_left(m, rows, m.cols());
}

/// S = softcap(scale Q K^T) + bias, and -inf where the mask hides a key from a query.
///
///   ScoreBlock<T> block(in);
///   block.load_queries(batch, head, first_query);
///   for (std::int64_t key = block.key_begin; key < block.key_end; key += key_block) {
///     if (!block.load_keys(key)) continue;  // no query of the block sees any of them
///     block.compute_scores();
///     ... block.S, of which (rows, width) is in use ...
///   }
///
/// Rows of S are padded to whole vectors of elements. The padding is hidden, and the keys and values that
/// belong to it are zeros.
template <class T>
class ScoreBlock {
 public:
  explicit ScoreBlock(const AttentionInputs<T>& in);

  /// Loads the queries first_query, ... of a head, times scale, and finds the range of keys that they see.
  void load_queries(std::int64_t batch, std::int64_t head, std::int64_t first_query);

  /// Copies rows of an array (B, H, Tq, X), times a factor, for the queries of the block. A query that sees
  /// no key gets zeros, whatever stands there.
  void copy_rows(const View4<T>& from, T factor, BlockMatrix<T>& to) const;

  /// Loads the keys first_key, ... and their values. A key that no query of the block sees is replaced by
  /// zeros, as is its value: in a product, NaN times a weight of 0 would be NaN. False if no query sees any
  /// of them.
  bool load_keys(std::int64_t first_key);

  /// Computes S and row_max.
  void compute_scores();

  /// The number of row i of the block among all rows (B, H, Tq).
  std::int64_t row_number(std::int64_t i) const {
    return (batch * in_.sizes.heads + head) * in_.sizes.queries + first_query + i;
  }

  /// Calls f(c, factor) for every vector of elements c, c + 1, ... of row i, with what dropout multiplies it
  /// by.
  template <class F>
  void for_each_dropout(std::int64_t i, const F& f) const {
    DropoutMask::Factors<T> factors;
    for (std::int64_t c = 0; c < width; c += block_size) {
      const std::int64_t within = c % DropoutMask::group_size;
      if (within == 0) {
        factors = in_.dropout->template factors<T>(row_number(i), (first_key + c) / DropoutMask::group_size);
      }
      f(c, factors[static_cast<std::size_t>(within / block_size)]);
    }
  }

  BlockMatrix<T> Q;             ///< (query_block, D), times scale
  BlockMatrix<T> K, V;          ///< (key_block, D), (key_block, Dv)
  BlockMatrix<T> S;             ///< (query_block, key_block)
  BlockMatrix<T> softcap_grad;  ///< as S: softcap'(scale Q K^T), where there is a softcap
  std::array<T, query_block> row_max;

  std::int64_t batch = 0, head = 0, first_query = 0, rows = 0;
  std::int64_t key_begin = 0, key_end = 0;  ///< where the loop over keys begins and ends
  std::int64_t first_key = 0, keys = 0;     ///< the block of keys that is loaded
  std::int64_t width = 0;                   ///< keys, rounded up to whole vectors of elements

 private:
  bool sees_something(std::int64_t i) const;
  bool find_seen_keys();
  T finish_row(std::int64_t i);
  Block<T> capped(const Block<T>& s, T* grad) const;
  Block<T> hidden_by_mask(Block<T> s, std::int64_t i, std::int64_t key) const;

  const AttentionInputs<T>& in_;
  std::array<KeyRange, query_block> ranges_;  // of keys that each query sees, but for mask.seen
  std::int64_t first_visible_ = 0;            // the least begin among those ranges
  std::vector<std::uint8_t> seen_;            // for each key of the block, whether any of its queries sees it
};

/// The gradient of a block of scores.
///
/// With the weights P = exp(S - shift) scale, and the cotangent dY of the block's outputs Y,
///   dP = dropout(dY V^T),   dS = P (dP - delta),   delta_i = <dY_i, Y_i>.
/// delta_i equals sum_j P_ij dP_ij, the sum over all keys that softmax's gradient needs; computed from Y, it
/// is known before the first block of keys (Dao et al. 2022, section B.2).
template <class T>
class ScoreGradient {
 public:
  ScoreGradient(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy);

  /// Loads dY and delta for the queries of the block.
  void load_queries(const ScoreBlock<T>& block);

  /// Computes dS, and puts dropout(P) in the place of S.
  void compute(ScoreBlock<T>& block);

  /// The gradient of the head's sink, summed over the rows of the block. A sink is a key whose value is 0, so
  /// its dP is 0.
  double dsink(const ScoreBlock<T>& block) const;

  BlockMatrix<T> dY;  ///< (query_block, Dv)
  BlockMatrix<T> dS;  ///< as ScoreBlock::S

 private:
  template <class Factor>
  void take_vector(ScoreBlock<T>& block, std::int64_t i, std::int64_t c, const Factor& factor);

  const AttentionInputs<T>& in_;
  const AttentionCotangent<T>& dy_;
  std::array<double, query_block> delta_;
};

}  // namespace fovea::kernels
