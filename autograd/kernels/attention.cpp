#include "autograd/kernels/attention.h"

#include "autograd/kernels/attention_tile.h"

namespace fovea::kernels {

KeyRange AttentionMask::range(const AttentionSizes& sizes, std::int64_t batch, std::int64_t query) const {
  const std::int64_t own = query + sizes.keys - sizes.queries;
  KeyRange keys{0, sizes.keys};
  if (causal) keys.end = std::min(keys.end, own + 1);
  if (window) {
    const std::int64_t n = std::min(*window, sizes.queries + sizes.keys);
    keys = {std::max(keys.begin, own - n + 1), std::min(keys.end, own + n)};
  }
  if (lengths) keys.end = std::min(keys.end, lengths[batch]);
  return keys;
}

namespace {

// The softmax of a block's rows so far, and their outputs before the division by the sums.
template <class T>
class RunningSoftmax {
 public:
  RunningSoftmax(const AttentionInputs<T>& in, AttentionTile<T>& tile)
      : in_(in), tile_(tile), output_(block_rows, in.sizes.value_size) {}

  void start(std::int64_t head) {
    output_.setZero();
    // A sink is a key that was met before all others, with a value of 0.
    max_.fill(in_.sinks ? in_.sinks[head] : -std::numeric_limits<T>::infinity());
    sum_.fill(in_.sinks ? 1 : 0);
  }

  void take_tile() {
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      take_row(i, max_[static_cast<std::size_t>(i)], sum_[static_cast<std::size_t>(i)]);
    }
    gemm_kernel_add(view_of(tile_.scores()), view_of(tile_.values()), output_.data(), output_.cols());
  }

  void finish(T* output, SoftmaxRow<T>* rows) {
    for (std::int64_t i = 0; i < tile_.rows(); ++i) {
      const double sum = sum_[static_cast<std::size_t>(i)];
      const T scale = sum == 0 ? T(0) : static_cast<T>(1 / sum);
      const std::int64_t number = tile_.row_number(i);
      rows[number] = {shift_of(max_[static_cast<std::size_t>(i)]), scale};
      for (std::int64_t d = 0; d < output_.cols(); ++d)
        output[number * output_.cols() + d] = output_(i, d) * scale;
    }
  }

 private:
  // An infinity is not subtracted: a row of -inf then adds up to 0, and +inf or NaN reach the sum.
  static T shift_of(T max) { return std::isfinite(max) ? max : T(0); }

  void take_row(std::int64_t i, T& max, double& sum) {
    const T before = max;
    max = std::max(max, tile_.largest(i));
    if (max != before) {
      const T fade = std::exp(before - max);
      sum *= static_cast<double>(fade);
      output_.row(i) *= fade;
    }
    sum += exponentiate(tile_.scores(i), shift_of(max));
    if (in_.dropout) {
      tile_.for_each_dropped(i, [&, s = tile_.scores(i)](std::int64_t c, const Block<T>& factor) {
        store_part<T>(load_part(s + c, Whole()) * factor, s + c, Whole());
      });
    }
  }

  // Scores become terms of the softmax; their sum.
  double exponentiate(T* scores, T shift) const {
    Block<T> total = Block<T>::Zero();
    for (std::int64_t c = 0; c < tile_.width(); c += block_size) {
      const Block<T> shifted = load_part(scores + c, Whole()) - shift;
      const Block<T> terms = kernels::exp(shifted);
      total += terms;
      store_part(terms, scores + c, Whole());
    }
    return cast<double>(total).sum();
  }

  const AttentionInputs<T>& in_;
  AttentionTile<T>& tile_;
  RowMajor<T> output_;
  std::array<T, block_rows> max_;
  std::array<double, block_rows> sum_;
};

}  // namespace

template <class T>
void attention(const AttentionInputs<T>& in, T* output, SoftmaxRow<T>* rows) {
  const std::int64_t blocks = blocks_of(in.sizes);
  parallel_for(in.sizes.batch * in.sizes.heads * blocks, pieces_at_a_time(in.sizes, 1),
               [&](std::int64_t begin, std::int64_t end) {
                 AttentionTile<T> tile(in);
                 RunningSoftmax<T> softmax(in, tile);
                 for (std::int64_t piece = begin; piece < end; ++piece) {
                   const std::int64_t head = piece / blocks % in.sizes.heads;
                   tile.go_to(piece / blocks / in.sizes.heads, head, piece % blocks);
                   softmax.start(head);
                   tile.for_each_tile([&] { softmax.take_tile(); });
                   softmax.finish(output, rows);
                 }
               });
}

template void attention<float>(const AttentionInputs<float>&, float*, SoftmaxRow<float>*);
template void attention<double>(const AttentionInputs<double>&, double*, SoftmaxRow<double>*);

}  // namespace fovea::kernels
