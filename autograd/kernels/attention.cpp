#include "autograd/kernels/attention.h"

#include <cmath>
#include <limits>

#include "autograd/kernels/attention_block.h"
#include "autograd/kernels/gemm_kernel.h"

namespace fovea::kernels {
namespace {

// The attention of one block of queries. For each query, over the keys j met so far,
//   m = max_j s_j,   l = sum_j exp(s_j - m),   y = sum_j exp(s_j - m) v_j.
// After the last block of keys, y / l is the query's output.
template <class T>
class OnlineSoftmax {
 public:
  OnlineSoftmax(const AttentionInputs<T>& in, ScoreBlock<T>& block)
      : in_(in), block_(block), y_(block.S.rows(), in.sizes.value_size) {}

  // FlashAttention's inner loop (Dao et al. 2022, algorithm 1; Dao 2023).
  void run(T* output, SoftmaxRow<T>* rows) {
    start();
    for (std::int64_t key = block_.key_begin; key < block_.key_end; key += key_block) {
      if (!block_.load_keys(key)) continue;
      block_.compute_scores();
      for (std::int64_t i = 0; i < block_.rows; ++i) {
        raise_max(i, block_.row_max[at(i)]);
        l_[at(i)] += exponentiate(i);
        if (in_.dropout) drop(i);
      }
      gemm_kernel_add(upper_left(block_.S, block_.rows, block_.width), upper_rows(block_.V, block_.width),
                      y_.data(), y_.cols());
    }
    finish(output, rows);
  }

 private:
  static constexpr T lowest = -std::numeric_limits<T>::infinity();

  // A sink is a key that was met before all others, whose value is 0. No sink is a sink of -inf.
  void start() {
    const T sink = in_.sinks ? in_.sinks[block_.head] : lowest;
    y_.setZero();
    m_.fill(sink);
    l_.fill(sink == lowest ? 0 : 1);
  }

  // Where m grows, the sums so far were taken with a smaller one: they are multiplied by exp(before - m).
  // They are 0 where m was -inf.
  void raise_max(std::int64_t i, T row_max) {
    const T before = m_[at(i)], m = std::max(before, row_max);
    if (m == before) return;
    m_[at(i)] = m;
    if (before == lowest) return;
    const T factor = std::exp(before - m);
    l_[at(i)] *= static_cast<double>(factor);
    y_.row(i) *= factor;
  }

  // What is subtracted from the scores before exp. An infinite m is not: so a row of -inf adds up to 0, and
  // +inf and NaN reach the sum.
  T shift(std::int64_t i) const { return std::isfinite(m_[at(i)]) ? m_[at(i)] : T(0); }

  // Replaces the scores of row i by exp(s - shift), and returns their sum.
  double exponentiate(std::int64_t i) {
    const T shift_of_row = shift(i);
    Block<T> total = Block<T>::Zero();
    for (std::int64_t c = 0; c < block_.width; c += block_size) {
      T* s = row_of(block_.S, i) + c;
      const Block<T> shifted = load_part(s, Whole()) - shift_of_row;
      const Block<T> terms = kernels::exp(shifted);
      total += terms;
      store_part(terms, s, Whole());
    }
    return cast<double>(total).sum();
  }

  void drop(std::int64_t i) {
    block_.for_each_dropout(i, [&](std::int64_t c, const Block<T>& factor) {
      T* s = row_of(block_.S, i) + c;
      store_part<T>(load_part(s, Whole()) * factor, s, Whole());
    });
  }

  void finish(T* output, SoftmaxRow<T>* rows) const {
    for (std::int64_t i = 0; i < block_.rows; ++i) {
      const T scale = l_[at(i)] == 0 ? T(0) : static_cast<T>(1 / l_[at(i)]);
      const std::int64_t number = block_.row_number(i);
      rows[number] = {shift(i), scale};
      for (std::int64_t d = 0; d < y_.cols(); ++d) output[number * y_.cols() + d] = y_(i, d) * scale;
    }
  }

  const AttentionInputs<T>& in_;
  ScoreBlock<T>& block_;
  std::array<T, query_block> m_;
  std::array<double, query_block> l_;
  BlockMatrix<T> y_;  // (query_block, Dv)
};

}  // namespace

template <class T>
void attention(const AttentionInputs<T>& in, T* output, SoftmaxRow<T>* rows) {
  const std::int64_t heads = in.sizes.heads, blocks = query_blocks(in.sizes);
  parallel_for(in.sizes.batch * heads * blocks, attention_chunk(in.sizes, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 ScoreBlock<T> block(in);
                 OnlineSoftmax<T> softmax(in, block);
                 for (std::int64_t i = begin; i < end; ++i) {
                   block.load_queries(i / blocks / heads, i / blocks % heads, i % blocks * query_block);
                   softmax.run(output, rows);
                 }
               });
}

template void attention<float>(const AttentionInputs<float>&, float*, SoftmaxRow<float>*);
template void attention<double>(const AttentionInputs<double>&, double*, SoftmaxRow<double>*);

}  // namespace fovea::kernels
