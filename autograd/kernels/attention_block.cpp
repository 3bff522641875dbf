#include "autograd/kernels/attention_block.h"

#include <cmath>
#include <limits>

#include "autograd/kernels/gemm_kernel.h"
#include "autograd/kernels/logistic.h"

namespace fovea::kernels {

KeyRange AttentionMask::range(const AttentionSizes& sizes, std::int64_t batch, std::int64_t query) const {
  // The last query is aligned with the last key.
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

template <class T>
constexpr T hidden = -std::numeric_limits<T>::infinity();

std::int64_t whole_vectors(std::int64_t n) { return (n + block_size - 1) / block_size * block_size; }

// Short sequences need less than a whole block.
std::int64_t block_rows(const AttentionSizes& n) { return std::min(query_block, n.queries); }
std::int64_t block_width(const AttentionSizes& n) { return std::min(key_block, whole_vectors(n.keys)); }

template <class T>
inline void copy_row(const T* from, std::int64_t step, T factor, std::int64_t n, T* to) {
  if (step == 1) {
    for (std::int64_t d = 0; d < n; ++d) to[d] = from[d] * factor;
  } else {
    for (std::int64_t d = 0; d < n; ++d) to[d] = from[d * step] * factor;
  }
}

}  // namespace

// --- Scores ------------------------------------------------------------------------------------------------

template <class T>
ScoreBlock<T>::ScoreBlock(const AttentionInputs<T>& in)
    : Q(block_rows(in.sizes), in.sizes.head_size),
      K(block_width(in.sizes), in.sizes.head_size),
      V(block_width(in.sizes), in.sizes.value_size),
      S(block_rows(in.sizes), block_width(in.sizes)),
      softcap_grad(in.softcap > 0 ? S.rows() : 0, S.cols()),
      in_(in),
      seen_(at(S.cols())) {}

template <class T>
void ScoreBlock<T>::load_queries(std::int64_t of_batch, std::int64_t of_head, std::int64_t first) {
  batch = of_batch;
  head = of_head;
  first_query = first;
  rows = std::min(query_block, in_.sizes.queries - first);
  first_visible_ = in_.sizes.keys;
  key_end = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const KeyRange range = ranges_[at(i)] = in_.mask.range(in_.sizes, batch, first + i);
    if (range.empty()) continue;
    first_visible_ = std::min(first_visible_, range.begin);
    key_end = std::max(key_end, range.end);
  }
  // Blocks of keys begin at multiples of their size, whichever queries meet them: sums over queries depend on
  // it, and so do the groups of dropout.
  key_begin = first_visible_ / key_block * key_block;
  copy_rows(in_.q, static_cast<T>(in_.scale), Q);
}

template <class T>
void ScoreBlock<T>::copy_rows(const View4<T>& from, T factor, BlockMatrix<T>& to) const {
  for (std::int64_t i = 0; i < rows; ++i) {
    if (sees_something(i)) {
      copy_row(from.row(batch, head, first_query + i), from.step(), factor, to.cols(), row_of(to, i));
    } else {
      to.row(i).setZero();
    }
  }
}

template <class T>
bool ScoreBlock<T>::sees_something(std::int64_t i) const {
  const KeyRange range = ranges_[at(i)];
  if (range.empty() || !in_.mask.seen) return !range.empty();
  const std::uint8_t* seen = in_.mask.seen.row(batch, head, first_query + i);
  for (std::int64_t j = range.begin; j < range.end; ++j) {
    if (seen[j * in_.mask.seen.step()]) return true;
  }
  return false;
}

template <class T>
bool ScoreBlock<T>::load_keys(std::int64_t first) {
  first_key = first;
  keys = std::min(key_block, key_end - first);
  width = whole_vectors(keys);
  if (!find_seen_keys()) return false;
  const std::int64_t key_head = head / in_.sizes.group();
  for (std::int64_t c = 0; c < width; ++c) {
    if (c < keys && seen_[at(c)]) {
      copy_row(in_.k.row(batch, key_head, first + c), in_.k.step(), T(1), K.cols(), row_of(K, c));
      copy_row(in_.v.row(batch, key_head, first + c), in_.v.step(), T(1), V.cols(), row_of(V, c));
    } else {
      K.row(c).setZero();
      V.row(c).setZero();
    }
  }
  return true;
}

// Fills seen_; false if no query sees any key of the block.
template <class T>
bool ScoreBlock<T>::find_seen_keys() {
  std::ranges::fill(seen_, std::uint8_t{0});
  if (!in_.mask.seen) {
    // The ranges of neighbouring queries overlap, so there is no gap between the first key and the last one.
    const std::int64_t from = std::max<std::int64_t>(0, first_visible_ - first_key);
    if (from < keys) std::fill(seen_.begin() + from, seen_.begin() + keys, std::uint8_t{1});
    return from < keys;
  }
  bool any = false;
  for (std::int64_t i = 0; i < rows; ++i) {
    const KeyRange range = ranges_[at(i)];
    const std::int64_t step = in_.mask.seen.step();
    const std::uint8_t* seen = in_.mask.seen.row(batch, head, first_query + i) + first_key * step;
    const std::int64_t end = std::min(keys, range.end - first_key);
    for (std::int64_t c = std::max<std::int64_t>(0, range.begin - first_key); c < end; ++c) {
      if (!seen[c * step]) continue;
      seen_[at(c)] = 1;
      any = true;
    }
  }
  return any;
}

template <class T>
void ScoreBlock<T>::compute_scores() {
  gemm_kernel(upper_rows(Q, rows), transposed(upper_rows(K, width)), S.data(), S.cols());
  for (std::int64_t i = 0; i < rows; ++i) row_max[at(i)] = finish_row(i);
}

// Applies softcap, biases and mask to a row of products; returns its largest score.
template <class T>
T ScoreBlock<T>::finish_row(std::int64_t i) {
  const std::int64_t query = first_query + i;
  const T* bias = in_.bias ? in_.bias.row(batch, head, query) : nullptr;
  const T* relative_bias = nullptr;  // at key j: the bias of this query and j
  if (in_.relative_bias) {
    const std::int64_t table = in_.relative_heads == 1 ? 0 : head;
    relative_bias = in_.relative_bias + table * in_.sizes.distances() + in_.sizes.queries - 1 - query;
  }
  Block<T> top = Block<T>::Constant(hidden<T>);
  for (std::int64_t c = 0; c < width; c += block_size) {
    const std::int64_t key = first_key + c,
                       present = std::min<std::int64_t>(block_size, in_.sizes.keys - key);
    Block<T> s = load_part(row_of(S, i) + c, Whole());
    if (in_.softcap > 0) s = capped(s, row_of(softcap_grad, i) + c);
    if (bias) s += load(bias + key * in_.bias.step(), in_.bias.step(), present);
    if (relative_bias) s += load(relative_bias + key, 1, present);
    s = hidden_by_mask(s, i, key);
    top = top.max(s);
    store_part(s, row_of(S, i) + c, Whole());
  }
  return largest_lane(top);
}

// softcap(s) = cap tanh(s / cap), and its derivative tanh'(s / cap).
template <class T>
inline Block<T> ScoreBlock<T>::capped(const Block<T>& s, T* grad) const {
  const T cap = static_cast<T>(in_.softcap);
  const Block<T> scaled = s / cap;
  store_part<T>(kernels::tanh_slope(scaled), grad, Whole());
  return kernels::tanh(scaled) * cap;
}

// -inf in place of the scores s of row i and the keys key, key + 1, ... that it does not see.
template <class T>
inline Block<T> ScoreBlock<T>::hidden_by_mask(Block<T> s, std::int64_t i, std::int64_t key) const {
  const KeyRange range = ranges_[at(i)];
  if (key < range.begin || key + block_size > range.end) {
    const auto lane = [&](std::int64_t j) {
      return static_cast<int>(std::clamp<std::int64_t>(j - key, 0, block_size));
    };
    const int begin = lane(range.begin), end = lane(range.end);
    for_each_lane([&](int l) { s[l] = ((l >= begin) & (l < end)) ? s[l] : hidden<T>; });
  }
  if (in_.mask.seen) {
    const std::int64_t step = in_.mask.seen.step();
    const std::uint8_t* seen = in_.mask.seen.row(batch, head, first_query + i) + key * step;
    const std::int64_t present = std::min<std::int64_t>(block_size, in_.sizes.keys - key);
    for (std::int64_t l = 0; l < present; ++l) {
      if (!seen[l * step]) s[l] = hidden<T>;
    }
  }
  return s;
}

// --- Their gradient ----------------------------------------------------------------------------------------

template <class T>
ScoreGradient<T>::ScoreGradient(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy)
    : dY(block_rows(in.sizes), in.sizes.value_size),
      dS(block_rows(in.sizes), block_width(in.sizes)),
      in_(in),
      dy_(dy) {}

template <class T>
void ScoreGradient<T>::load_queries(const ScoreBlock<T>& block) {
  block.copy_rows(dy_.doutput, T(1), dY);
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const T* of_dy = row_of(dY, i);
    const T* of_y = dy_.output + block.row_number(i) * dY.cols();
    Block<double> total = Block<double>::Zero();
    for_each_block(dY.cols(), [&](std::int64_t d, auto count) {
      total += cast<double>(load_part(of_dy + d, count)) * cast<double>(load_part(of_y + d, count));
    });
    delta_[at(i)] = total.sum();
  }
}

template <class T>
void ScoreGradient<T>::compute(ScoreBlock<T>& block) {
  // dS holds dP first.
  gemm_kernel(upper_rows(dY, block.rows), transposed(upper_rows(block.V, block.width)), dS.data(), dS.cols());
  for (std::int64_t i = 0; i < block.rows; ++i) {
    if (in_.dropout) {
      block.for_each_dropout(
          i, [&](std::int64_t c, const Block<T>& factor) { take_vector(block, i, c, factor); });
    } else {
      for (std::int64_t c = 0; c < block.width; c += block_size) take_vector(block, i, c, T(1));
    }
  }
}

template <class T>
template <class Factor>
void ScoreGradient<T>::take_vector(ScoreBlock<T>& block, std::int64_t i, std::int64_t c,
                                   const Factor& factor) {
  const SoftmaxRow<T>& row = dy_.rows[block.row_number(i)];
  T* s = row_of(block.S, i) + c;
  T* ds = row_of(dS, i) + c;
  const Block<T> shifted = load_part(s, Whole()) - row.shift;
  const Block<T> weights = kernels::exp(shifted) * row.scale;
  store_part<T>(weights * factor, s, Whole());
  store_part<T>(weights * (load_part(ds, Whole()) * factor - static_cast<T>(delta_[at(i)])), ds, Whole());
}

template <class T>
double ScoreGradient<T>::dsink(const ScoreBlock<T>& block) const {
  double total = 0;
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const SoftmaxRow<T>& row = dy_.rows[block.row_number(i)];
    const double shifted = static_cast<double>(in_.sinks[block.head]) - static_cast<double>(row.shift);
    total -= std::exp(shifted) * static_cast<double>(row.scale) * delta_[at(i)];
  }
  return total;
}

template class ScoreBlock<float>;
template class ScoreBlock<double>;
template class ScoreGradient<float>;
template class ScoreGradient<double>;

}  // namespace fovea::kernels
