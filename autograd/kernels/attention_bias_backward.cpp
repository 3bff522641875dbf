#include <numeric>
#include <vector>

#include "autograd/kernels/attention_block.h"

namespace fovea::kernels {
namespace {

// The gradient of a bias is dS, summed over the axes along which the bias repeats. One item of work is a
// batch, a head and a block of queries of the bias; it meets all blocks of scores that share them.
template <class T>
class BiasGradient {
 public:
  BiasGradient(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy,
               const std::array<std::int64_t, 4>& shape)
      : in_(in),
        shape_(shape),
        block_(in),
        gradient_(in, dy),
        sums_(static_cast<std::size_t>(std::min(query_block, shape[2]) * shape[3])) {}

  void run(std::int64_t batch, std::int64_t head, std::int64_t query, T* dbias) {
    const AttentionSizes& n = in_.sizes;
    const auto all_or_one = [&](std::size_t axis, std::int64_t one, std::int64_t all) {
      return shape_[axis] == 1 ? KeyRange{0, all} : KeyRange{one, one + 1};
    };
    const KeyRange batches = all_or_one(0, batch, n.batch), heads = all_or_one(1, head, n.heads),
                   blocks = all_or_one(2, query, query_blocks(n));
    std::ranges::fill(sums_, 0.0);
    for (std::int64_t b = batches.begin; b < batches.end; ++b) {
      for (std::int64_t h = heads.begin; h < heads.end; ++h) {
        for (std::int64_t q = blocks.begin; q < blocks.end; ++q) add_queries(b, h, q);
      }
    }
    const std::int64_t rows = shape_[2] == 1 ? 1 : block_.rows;
    T* out = dbias + ((batch * shape_[1] + head) * shape_[2] + query * query_block) * shape_[3];
    std::transform(sums_.begin(), sums_.begin() + rows * shape_[3], out,
                   [](double sum) { return static_cast<T>(sum); });
  }

 private:
  void add_queries(std::int64_t batch, std::int64_t head, std::int64_t query) {
    block_.load_queries(batch, head, query * query_block);
    gradient_.load_queries(block_);
    for (std::int64_t key = block_.key_begin; key < block_.key_end; key += key_block) {
      if (!block_.load_keys(key)) continue;
      block_.compute_scores();
      gradient_.compute(block_);
      for (std::int64_t i = 0; i < block_.rows; ++i) add_row(row_of(gradient_.dS, i), i);
    }
  }

  void add_row(const T* ds, std::int64_t i) {
    double* row = sums_.data() + (shape_[2] == 1 ? 0 : i * shape_[3]);
    if (shape_[3] == 1) {
      *row = std::accumulate(ds, ds + block_.keys, *row);
    } else {
      for (std::int64_t c = 0; c < block_.keys; ++c) row[block_.first_key + c] += static_cast<double>(ds[c]);
    }
  }

  const AttentionInputs<T>& in_;
  std::array<std::int64_t, 4> shape_;
  ScoreBlock<T> block_;
  ScoreGradient<T> gradient_;
  std::vector<double> sums_;  // (query_block or 1, Tk or 1)
};

}  // namespace

template <class T>
void attention_bias_backward(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy,
                             const AttentionGradients<T>& out) {
  const AttentionSizes& n = in.sizes;
  const std::int64_t batch = out.bias_shape[0], heads = out.bias_shape[1];
  const std::int64_t blocks = out.bias_shape[2] == 1 ? 1 : query_blocks(n);
  const std::int64_t items = batch * heads * blocks;
  const std::int64_t blocks_per_item = n.batch * n.heads * query_blocks(n) / std::max<std::int64_t>(1, items);
  parallel_for(items, attention_chunk(n, blocks_per_item), [&](std::int64_t begin, std::int64_t end) {
    BiasGradient<T> gradient(in, dy, out.bias_shape);
    for (std::int64_t i = begin; i < end; ++i) {
      gradient.run(i / blocks / heads, i / blocks % heads, i % blocks, out.dbias);
    }
  });
}

template void attention_bias_backward<float>(const AttentionInputs<float>&, const AttentionCotangent<float>&,
                                             const AttentionGradients<float>&);
template void attention_bias_backward<double>(const AttentionInputs<double>&,
                                              const AttentionCotangent<double>&,
                                              const AttentionGradients<double>&);

}  // namespace fovea::kernels
