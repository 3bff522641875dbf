#include <vector>

#include "autograd/kernels/attention_block.h"
#include "autograd/kernels/gemm_kernel.h"

namespace fovea::kernels {
namespace {

// The blocks of queries of a head are dealt out to this many splits, in turns, so that each has an equal
// share of a causal mask. Each split has sums of its own for what all queries add to, dK and dV above all;
// they are added in order afterwards. There are few splits, since these sums take memory.
std::int64_t splits_per_head(const AttentionSizes& n) {
  constexpr std::int64_t enough = 8;
  const std::int64_t heads = std::max<std::int64_t>(1, n.batch * n.heads);
  return std::clamp<std::int64_t>((enough + heads - 1) / heads, 1,
                                  std::max<std::int64_t>(1, query_blocks(n)));
}

// The splits of all query heads that share a key head.
std::int64_t splits_per_key_head(const AttentionSizes& n) { return n.group() * splits_per_head(n); }

// The sums of one split.
template <class T>
struct SplitSums {
  T *dk, *dv;         // (Tk, D), (Tk, Dv); null where not needed
  double* drelative;  // (Tq + Tk - 1), and room for the padding of a block
  double* dsink;      // (1)
};

// Adds the gradient of a block of scores along its diagonals: entry j - i + Tq - 1 is the sum over all pairs
// of a query i and a key j with that distance.
template <class T>
void add_along_diagonals(const ScoreBlock<T>& block, const BlockMatrix<T>& dS, std::int64_t queries,
                         double* drelative) {
  for (std::int64_t i = 0; i < block.rows; ++i) {
    double* sums = drelative + queries - 1 - (block.first_query + i) + block.first_key;
    for (std::int64_t c = 0; c < block.width; c += block_size) {
      const Block<double> ds = cast<double>(load_part(row_of(dS, i) + c, Whole()));
      store_part<double>(load_part(sums + c, Whole()) + ds, sums + c, Whole());
    }
  }
}

template <class T>
void multiply_by_softcap_grad(const ScoreBlock<T>& block, BlockMatrix<T>& dS) {
  for (std::int64_t i = 0; i < block.rows; ++i) {
    for (std::int64_t c = 0; c < block.width; c += block_size) {
      T* ds = row_of(dS, i) + c;
      store_part<T>(load_part(ds, Whole()) * load_part(row_of(block.softcap_grad, i) + c, Whole()), ds,
                    Whole());
    }
  }
}

// The gradients that one split of a head's queries contributes.
template <class T>
class AttentionSplit {
 public:
  AttentionSplit(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy,
                 const AttentionGradients<T>& out)
      : in_(in), out_(out), block_(in), gradient_(in, dy), dQ_(block_.Q.rows(), block_.Q.cols()) {}

  void run(std::int64_t batch, std::int64_t head, std::int64_t split, const SplitSums<T>& sums) {
    const AttentionSizes& n = in_.sizes;
    if (sums.dk) std::fill_n(sums.dk, n.keys * n.head_size, T(0));
    if (sums.dv) std::fill_n(sums.dv, n.keys * n.value_size, T(0));
    for (std::int64_t b = split; b < query_blocks(n); b += splits_per_head(n)) {
      block_.load_queries(batch, head, b * query_block);
      gradient_.load_queries(block_);
      dQ_.setZero();
      for (std::int64_t key = block_.key_begin; key < block_.key_end; key += key_block) {
        if (block_.load_keys(key)) add_block(sums);
      }
      if (out_.dq) store_dq();
      if (sums.dsink) *sums.dsink += gradient_.dsink(block_);
    }
  }

 private:
  // FlashAttention's backward pass (Dao et al. 2022, algorithm 4), for one block of scores: with its weights
  // P,
  //   dV += dropout(P)^T dY,   dK += dS^T (scale Q),   dQ += dS K   (and times scale in the end),
  // where a softcap multiplies dS by its derivative before dK and dQ.
  void add_block(const SplitSums<T>& sums) {
    const AttentionSizes& n = in_.sizes;
    const std::int64_t rows = block_.rows, keys = block_.keys, first_key = block_.first_key;
    block_.compute_scores();
    gradient_.compute(block_);
    BlockMatrix<T>&P = block_.S, &dS = gradient_.dS;
    if (sums.dv) {
      gemm_kernel_add(transposed(upper_left(P, rows, keys)), upper_rows(gradient_.dY, rows),
                      sums.dv + first_key * n.value_size, n.value_size);
    }
    if (sums.drelative) add_along_diagonals(block_, dS, n.queries, sums.drelative);
    if (in_.softcap > 0) multiply_by_softcap_grad(block_, dS);
    if (sums.dk) {
      gemm_kernel_add(transposed(upper_left(dS, rows, keys)), upper_rows(block_.Q, rows),
                      sums.dk + first_key * n.head_size, n.head_size);
    }
    if (out_.dq) {
      gemm_kernel_add(upper_left(dS, rows, block_.width), upper_rows(block_.K, block_.width), dQ_.data(),
                      dQ_.cols());
    }
  }

  void store_dq() const {
    const T scale = static_cast<T>(in_.scale);
    T* dq = out_.dq + block_.row_number(0) * dQ_.cols();
    std::transform(dQ_.data(), dQ_.data() + block_.rows * dQ_.cols(), dq, [=](T x) { return x * scale; });
  }

  const AttentionInputs<T>& in_;
  const AttentionGradients<T>& out_;
  ScoreBlock<T> block_;
  ScoreGradient<T> gradient_;
  BlockMatrix<T> dQ_;  // (query_block, D)
};

// out (heads, size): the sums over splits of (heads, splits, size), in order.
template <class T>
void add_splits(const T* sums, std::int64_t heads, std::int64_t splits, std::int64_t size, T* out) {
  const std::int64_t chunk =
      std::max<std::int64_t>(1, elements_per_chunk / std::max<std::int64_t>(1, splits * size));
  parallel_for(heads, chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      const T* from = sums + head * splits * size;
      T* to = out + head * size;
      std::copy_n(from, size, to);
      for (std::int64_t split = 1; split < splits; ++split) {
        for (std::int64_t i = 0; i < size; ++i) to[i] += from[split * size + i];
      }
    }
  });
}

// out (rows, size): row r is the sum of those items i, `step` apart in `items`, for which row_of_item(i) is
// r.
template <class T, class RowOf>
void add_to_rows(const std::vector<double>& items, std::int64_t step, std::int64_t size, std::int64_t rows,
                 const RowOf& row_of_item, T* out) {
  std::vector<double> sums(at(rows * size));
  for (std::int64_t item = 0; item < std::ssize(items) / step; ++item) {
    const double* from = items.data() + item * step;
    double* sum = sums.data() + row_of_item(item) * size;
    for (std::int64_t i = 0; i < size; ++i) sum[i] += from[i];
  }
  std::ranges::transform(sums, out, [](double sum) { return static_cast<T>(sum); });
}

}  // namespace

std::int64_t attention_backward_workspace(const AttentionSizes& n) {
  const std::int64_t splits = splits_per_key_head(n);
  if (splits == 1) return 0;
  return n.batch * n.key_heads * splits * n.keys * (n.head_size + n.value_size);
}

template <class T>
void attention_backward(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy,
                        const AttentionGradients<T>& out, T* workspace) {
  const AttentionSizes& n = in.sizes;
  const std::int64_t per_head = splits_per_head(n), items = n.batch * n.heads * per_head;
  // The query heads of a group follow one another, and so do the sums of one key head. The sums of a single
  // split are the result.
  const std::int64_t splits = splits_per_key_head(n);
  T* dk = splits == 1 ? out.dk : workspace;
  T* dv = splits == 1 ? out.dv : workspace + items * n.keys * n.head_size;
  const std::int64_t diagonals = n.distances() + block_size;
  std::vector<double> drelative(at(out.drelative ? items * diagonals : 0));
  std::vector<double> dsinks(at(out.dsinks ? items : 0));

  const std::int64_t blocks_per_item = (query_blocks(n) + per_head - 1) / per_head;
  parallel_for(items, attention_chunk(n, blocks_per_item), [&](std::int64_t begin, std::int64_t end) {
    AttentionSplit<T> split(in, dy, out);
    for (std::int64_t i = begin; i < end; ++i) {
      split.run(i / per_head / n.heads, i / per_head % n.heads, i % per_head,
                {.dk = out.dk ? dk + i * n.keys * n.head_size : nullptr,
                 .dv = out.dv ? dv + i * n.keys * n.value_size : nullptr,
                 .drelative = out.drelative ? drelative.data() + i * diagonals : nullptr,
                 .dsink = out.dsinks ? dsinks.data() + i : nullptr});
    }
  });

  const std::int64_t key_heads = n.batch * n.key_heads;
  if (out.dk && splits != 1) add_splits(dk, key_heads, splits, n.keys * n.head_size, out.dk);
  if (out.dv && splits != 1) add_splits(dv, key_heads, splits, n.keys * n.value_size, out.dv);
  const auto head_of = [&](std::int64_t item) { return item / per_head % n.heads; };
  const auto table_of = [&](std::int64_t item) { return in.relative_heads == 1 ? 0 : head_of(item); };
  if (out.drelative) {
    add_to_rows(drelative, diagonals, n.distances(), in.relative_heads, table_of, out.drelative);
  }
  if (out.dsinks) add_to_rows(dsinks, 1, 1, n.heads, head_of, out.dsinks);
}

template void attention_backward<float>(const AttentionInputs<float>&, const AttentionCotangent<float>&,
                                        const AttentionGradients<float>&, float*);
template void attention_backward<double>(const AttentionInputs<double>&, const AttentionCotangent<double>&,
                                         const AttentionGradients<double>&, double*);

}  // namespace fovea::kernels
