#include <numeric>

#include "autograd/kernels/attention.h"
#include "autograd/kernels/attention_tile.h"

namespace fovea::kernels {
namespace {

// The queries of a head are dealt out to so many pieces of work, block by block, so that all have an equal
// share of a causal map. Each piece has sums of its own for what all queries add to, added up in order
// afterwards: few, since they cost memory.
std::int64_t pieces_per_head(const AttentionSizes& n) {
  constexpr std::int64_t enough = 8;
  const std::int64_t heads = std::max<std::int64_t>(1, n.batch * n.heads);
  return std::clamp<std::int64_t>((enough + heads - 1) / heads, 1, std::max<std::int64_t>(1, blocks_of(n)));
}

// Sums for one key head: of each piece of each query head that shares it.
std::int64_t parts_per_key_head(const AttentionSizes& n) { return n.group() * pieces_per_head(n); }

// The weights of a tile and the gradient of its scores, from those of a block's outputs.
template <class T>
class TileGradient {
 public:
  TileGradient(const AttentionInputs<T>& in, const AttentionRun<T>& run, AttentionTile<T>& tile)
      : in_(in),
        run_(run),
        tile_(tile),
        doutput_(block_rows, in.sizes.value_size),
        dscores_(block_rows, tile_keys) {}

  /// After the tile went to a block. D = <dy, y> = sum_j w_j dw_j.
  void start() {
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      tile_.copy_query(run_.doutput, T(1), doutput_, i);
      const T* dy = doutput_.data() + i * doutput_.cols();
      const T* y = run_.output + tile_.row_number(i) * doutput_.cols();
      D_[at(i)] = std::inner_product(dy, dy + doutput_.cols(), y, 0.0, std::plus<>(),
                                     [](T a, T b) { return static_cast<double>(a) * b; });
    }
  }

  /// With w = exp(s - shift) scale and dw = dropout(dy v^T): ds = w (dw - D), and dropout(w) instead of the
  /// scores.
  void take_tile() {
    gemm_kernel(view_of(doutput()), view_of(tile_.values().transpose()), dscores_.data(), dscores_.cols());
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      if (in_.dropout) {
        tile_.for_each_dropped(i, [&](std::int64_t c, const Block<T>& factor) { take_block(i, c, factor); });
      } else {
        for (std::int64_t c = 0; c < tile_.width(); c += block_size) take_block(i, c, T(1));
      }
    }
  }

  /// The sink of a head is a key with a value of 0, so its dw is 0.
  double dsink(std::int64_t head) const {
    double total = 0;
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      const SoftmaxRow<T>& row = row_of(i);
      const double weight = std::exp(static_cast<double>(in_.sinks[head]) - static_cast<double>(row.shift));
      total -= weight * static_cast<double>(row.scale) * D_[at(i)];
    }
    return total;
  }

  auto doutput() { return doutput_.topRows(tile_.rows()); }
  auto dscores() { return dscores_.topLeftCorner(tile_.rows(), tile_.width()); }
  T* dscores(std::int64_t i) { return &dscores_(i, 0); }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  const SoftmaxRow<T>& row_of(std::int64_t i) const { return run_.rows[tile_.row_number(i)]; }

  template <class Factor>
  void take_block(std::int64_t i, std::int64_t c, const Factor& factor) {
    const SoftmaxRow<T>& row = row_of(i);
    T* s = tile_.scores(i) + c;
    T* ds = dscores(i) + c;
    const Block<T> shifted = load_part(s, Whole()) - row.shift;
    const Block<T> weights = kernels::exp(shifted) * row.scale;
    store_part<T>(weights * factor, s, Whole());
    store_part<T>(weights * (load_part(ds, Whole()) * factor - static_cast<T>(D_[at(i)])), ds, Whole());
  }

  const AttentionInputs<T>& in_;
  const AttentionRun<T>& run_;
  AttentionTile<T>& tile_;
  RowMajor<T> doutput_, dscores_;
  std::array<double, block_rows> D_;
};

// Where a piece of work adds up what all queries add to.
template <class T>
struct PieceSums {
  T *dk, *dv;                 // (Tk, D), (Tk, Dv); null where not needed
  double *drelative, *dsink;  // (distances + block), (1)
};

// One piece: some blocks of queries of one head.
template <class T>
class Piece {
 public:
  Piece(const AttentionInputs<T>& in, const AttentionRun<T>& run, const AttentionGradients<T>& out)
      : in_(in), out_(out), tile_(in), gradient_(in, run, tile_), dqueries_(block_rows, in.sizes.head_size) {}

  void run(std::int64_t batch, std::int64_t head, std::int64_t piece, const PieceSums<T>& sums) {
    const AttentionSizes& n = in_.sizes;
    if (sums.dk) std::fill_n(sums.dk, n.keys * n.head_size, T(0));
    if (sums.dv) std::fill_n(sums.dv, n.keys * n.value_size, T(0));
    for (std::int64_t block = piece; block < blocks_of(n); block += pieces_per_head(n)) {
      tile_.go_to(batch, head, block);
      gradient_.start();
      dqueries_.setZero();
      if (sums.dsink) *sums.dsink += gradient_.dsink(head);
      tile_.for_each_tile([&] { take_tile(sums); });
      if (out_.dq) store_dq();
    }
  }

 private:
  void take_tile(const PieceSums<T>& sums) {
    gradient_.take_tile();
    const AttentionSizes& n = in_.sizes;
    const std::int64_t keys = tile_.count();
    if (sums.dv) {
      gemm_kernel_add(view_of(tile_.scores().leftCols(keys).transpose()), view_of(gradient_.doutput()),
                  sums.dv + tile_.tile() * n.value_size, n.value_size);
    }
    if (sums.drelative) add_along_diagonals(sums.drelative);
    if (in_.softcap > 0) unbend();
    if (sums.dk) {
      gemm_kernel_add(view_of(gradient_.dscores().leftCols(keys).transpose()), view_of(tile_.queries()),
                  sums.dk + tile_.tile() * n.head_size, n.head_size);
    }
    if (out_.dq) {
      gemm_kernel_add(view_of(gradient_.dscores()), view_of(tile_.keys()), dqueries_.data(), dqueries_.cols());
    }
  }

  void add_along_diagonals(double* drelative) {
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      double* sums = drelative + in_.sizes.queries - 1 - (tile_.first() + i) + tile_.tile();
      for (std::int64_t c = 0; c < tile_.width(); c += block_size) {
        const Block<double> ds = cast<double>(load_part(gradient_.dscores(i) + c, Whole()));
        store_part<double>(load_part(sums + c, Whole()) + ds, sums + c, Whole());
      }
    }
  }

  void unbend() {
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      T* ds = gradient_.dscores(i);
      for (std::int64_t c = 0; c < tile_.width(); c += block_size) {
        store_part<T>(load_part(ds + c, Whole()) * load_part(tile_.slopes(i) + c, Whole()), ds + c, Whole());
      }
    }
  }

  void store_dq() {
    Eigen::Map<RowMajor<T>>(out_.dq + tile_.row_number(0) * in_.sizes.head_size, tile_.rows(),
                            in_.sizes.head_size) =
        dqueries_.topRows(tile_.rows()) * static_cast<T>(in_.scale);
  }

  const AttentionInputs<T>& in_;
  const AttentionGradients<T>& out_;
  AttentionTile<T> tile_;
  TileGradient<T> gradient_;
  RowMajor<T> dqueries_;
};

// out (heads, size) = parts (heads, per_head, size), added up in order.
template <class T>
void add_parts(const T* parts, std::int64_t heads, std::int64_t per_head, std::int64_t size, T* out) {
  using Values = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
  using ConstValues = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
  parallel_for(heads,
               std::max<std::int64_t>(1, elements_per_chunk / std::max<std::int64_t>(1, per_head * size)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t head = begin; head < end; ++head) {
                   const T* from = parts + head * per_head * size;
                   Values sum(out + head * size, size);
                   sum = ConstValues(from, size);
                   for (std::int64_t p = 1; p < per_head; ++p) sum += ConstValues(from + p * size, size);
                 }
               });
}

// Row row_of(p) of out (rows, size) is the sum of those pieces p of `parts`, which are `step` apart.
template <class T, class F>
void add_rows(const std::vector<double>& parts, std::int64_t step, std::int64_t size, std::int64_t rows,
              const F& row_of, T* out) {
  std::vector<double> sums(static_cast<std::size_t>(rows * size));
  for (std::int64_t p = 0; p < std::ssize(parts) / step; ++p) {
    const double* part = parts.data() + p * step;
    double* sum = sums.data() + row_of(p) * size;
    for (std::int64_t i = 0; i < size; ++i) sum[i] += part[i];
  }
  std::ranges::transform(sums, out, [](double sum) { return static_cast<T>(sum); });
}

// The gradient of a bias for one of its batches, heads and blocks of queries, summed over all that share it.
template <class T>
class BiasPiece {
 public:
  BiasPiece(const AttentionInputs<T>& in, const AttentionRun<T>& run,
            const std::array<std::int64_t, 4>& shape)
      : in_(in),
        shape_(shape),
        tile_(in),
        gradient_(in, run, tile_),
        sums_(static_cast<std::size_t>(std::min(block_rows, shape[2]) * shape[3])) {}

  void run(std::int64_t batch, std::int64_t head, std::int64_t block, T* dbias) {
    const AttentionSizes& n = in_.sizes;
    std::ranges::fill(sums_, 0.0);
    // An axis of size 1 that repeats is summed over.
    const auto all_or = [](bool repeats, std::int64_t one, std::int64_t all) {
      return repeats ? KeyRange{0, all} : KeyRange{one, one + 1};
    };
    const KeyRange batches = all_or(shape_[0] == 1, batch, n.batch),
                   heads = all_or(shape_[1] == 1, head, n.heads);
    const KeyRange blocks = all_or(shape_[2] == 1, block, blocks_of(n));
    for (std::int64_t b = batches.begin; b < batches.end; ++b) {
      for (std::int64_t h = heads.begin; h < heads.end; ++h) {
        for (std::int64_t at = blocks.begin; at < blocks.end; ++at) {
          tile_.go_to(b, h, at);
          gradient_.start();
          tile_.for_each_tile([&] { add_tile(); });
        }
      }
    }
    const std::int64_t rows = shape_[2] == 1 ? 1 : tile_.rows();
    T* out = dbias + (((batch * shape_[1] + head) * shape_[2]) + block * block_rows) * shape_[3];
    std::transform(sums_.begin(), sums_.begin() + rows * shape_[3], out,
                   [](double sum) { return static_cast<T>(sum); });
  }

 private:
  void add_tile() {
    gradient_.take_tile();
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      const T* ds = gradient_.dscores(i);
      double* row = sums_.data() + (shape_[2] == 1 ? 0 : i * shape_[3]);
      if (shape_[3] == 1) {
        *row = std::accumulate(ds, ds + tile_.count(), *row);
      } else {
        for (std::int64_t c = 0; c < tile_.count(); ++c) row[tile_.tile() + c] += static_cast<double>(ds[c]);
      }
    }
  }

  const AttentionInputs<T>& in_;
  std::array<std::int64_t, 4> shape_;
  AttentionTile<T> tile_;
  TileGradient<T> gradient_;
  std::vector<double> sums_;  // (rows of a block or 1, Tk or 1)
};

}  // namespace

std::int64_t attention_backward_space(const AttentionSizes& sizes) {
  const std::int64_t parts = parts_per_key_head(sizes);
  if (parts == 1) return 0;
  return sizes.batch * sizes.key_heads * parts * sizes.keys * (sizes.head_size + sizes.value_size);
}

template <class T>
void attention_backward(const AttentionInputs<T>& in, const AttentionRun<T>& run,
                        const AttentionGradients<T>& out, T* space) {
  const AttentionSizes& n = in.sizes;
  const std::int64_t per_head = pieces_per_head(n), pieces = n.batch * n.heads * per_head;
  const std::int64_t key_heads = n.batch * n.key_heads, parts = parts_per_key_head(n);
  // Query heads of a group follow one another, so a piece's number is the place of its sums as well. Sums of
  // one part are the result.
  T* dk = parts == 1 ? out.dk : space;
  T* dv = parts == 1 ? out.dv : space + pieces * n.keys * n.head_size;
  // With room for the padding of tiles.
  const std::int64_t distances = n.distances() + block_size;
  std::vector<double> drelative(static_cast<std::size_t>(out.drelative ? pieces * distances : 0));
  std::vector<double> dsinks(static_cast<std::size_t>(out.dsinks ? pieces : 0));

  const std::int64_t blocks_per_piece = (blocks_of(n) + per_head - 1) / per_head;
  parallel_for(pieces, pieces_at_a_time(n, blocks_per_piece), [&](std::int64_t begin, std::int64_t end) {
    Piece<T> work(in, run, out);
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t head = piece / per_head;
      work.run(head / n.heads, head % n.heads, piece % per_head,
               {.dk = out.dk ? dk + piece * n.keys * n.head_size : nullptr,
                .dv = out.dv ? dv + piece * n.keys * n.value_size : nullptr,
                .drelative = out.drelative ? drelative.data() + piece * distances : nullptr,
                .dsink = out.dsinks ? dsinks.data() + piece : nullptr});
    }
  });
  if (parts != 1) {
    if (out.dk) add_parts(dk, key_heads, parts, n.keys * n.head_size, out.dk);
    if (out.dv) add_parts(dv, key_heads, parts, n.keys * n.value_size, out.dv);
  }
  const auto head_of = [&](std::int64_t piece) { return piece / per_head % n.heads; };
  if (out.drelative) {
    add_rows(
        drelative, distances, n.distances(), in.relative_heads,
        [&](std::int64_t piece) { return in.relative_heads == 1 ? 0 : head_of(piece); }, out.drelative);
  }
  if (out.dsinks) add_rows(dsinks, 1, 1, n.heads, head_of, out.dsinks);
}

template <class T>
void attention_bias_backward(const AttentionInputs<T>& in, const AttentionRun<T>& run,
                             const AttentionGradients<T>& out) {
  const AttentionSizes& n = in.sizes;
  const std::int64_t batch = out.bias_shape[0], heads = out.bias_shape[1];
  const std::int64_t blocks = out.bias_shape[2] == 1 ? 1 : blocks_of(n);
  const std::int64_t pieces = batch * heads * blocks;
  const std::int64_t blocks_per_piece = n.batch * n.heads * blocks_of(n) / std::max<std::int64_t>(1, pieces);
  parallel_for(pieces, pieces_at_a_time(n, blocks_per_piece), [&](std::int64_t begin, std::int64_t end) {
    BiasPiece<T> work(in, run, out.bias_shape);
    for (std::int64_t piece = begin; piece < end; ++piece) {
      work.run(piece / blocks / heads, piece / blocks % heads, piece % blocks, out.dbias);
    }
  });
}

template void attention_backward<float>(const AttentionInputs<float>&, const AttentionRun<float>&,
                                        const AttentionGradients<float>&, float*);
template void attention_bias_backward<float>(const AttentionInputs<float>&, const AttentionRun<float>&,
                                             const AttentionGradients<float>&);
template void attention_backward<double>(const AttentionInputs<double>&, const AttentionRun<double>&,
                                         const AttentionGradients<double>&, double*);
template void attention_bias_backward<double>(const AttentionInputs<double>&, const AttentionRun<double>&,
                                              const AttentionGradients<double>&);

}  // namespace fovea::kernels
