#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "autograd/kernels/exp.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

// Loops over the rows of a row-major array, block by block: for softmax, cross-entropy, logsumexp, norms and
// attention.
namespace fovea::kernels {

/// The number of elements of a whole block, as a type: so the compiler knows that no lane is missing. At the
/// end of a row, where lanes may be missing, the number is a std::int64_t instead.
using Whole = std::integral_constant<std::int64_t, block_size>;

/// Calls f(i, count) for the blocks of a row of n elements; `count` is Whole for all but the last.
template <class F>
void for_each_block(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + block_size <= n; i += block_size) f(i, Whole());
  if (i < n) f(i, n - i);
}

template <class T>
Block<T> load_part(const T* data, Whole, T = 0) {
  return ConstBlockMap<T>{data};
}
template <class T>
void store_part(const Block<T>& block, T* data, Whole) {
  BlockMap<T>{data} = block;
}

/// Loads or stores the first `count` elements of a block; the other lanes are loaded as `pad`.
///
/// Rows are often shorter than a block. Compilers make these loops masked loads and stores, which are faster
/// than a copy through a buffer in memory.
template <class T>
Block<T> load_part(const T* data, std::int64_t count, T pad = 0) {
  const int present = static_cast<int>(count);
  Block<T> block;
  for_each_lane([&](int i) { block[i] = i < present ? data[i] : pad; });
  return block;
}
template <class T>
void store_part(const Block<T>& block, T* data, std::int64_t count) {
  const int present = static_cast<int>(count);
  for_each_lane([&](int i) {
    if (i < present) data[i] = block[i];
  });
}

#if defined(__AVX512F__)
// GCC 12 turns the loop into a masked load that keeps the other lanes of its register, so that each row waits
// for the row before. A softmax over rows of 15 elements took twice as long.
inline Block<float> load_part(const float* data, std::int64_t count, float pad = 0) {
  const auto present = static_cast<__mmask16>((1 << count) - 1);
  Block<float> block;
  _mm512_store_ps(block.data(), _mm512_mask_loadu_ps(_mm512_set1_ps(pad), present, data));
  return block;
}
inline Block<double> load_part(const double* data, std::int64_t count, double pad = 0) {
  const int present = (1 << count) - 1;
  const __m512d pads = _mm512_set1_pd(pad);
  Block<double> block;
  _mm512_store_pd(block.data(), _mm512_mask_loadu_pd(pads, static_cast<__mmask8>(present), data));
  _mm512_store_pd(block.data() + 8,
                  _mm512_mask_loadu_pd(pads, static_cast<__mmask8>(present >> 8), data + 8));
  return block;
}
#endif

namespace detail {
// The attribute inlines everything that f calls, so that blocks stay in registers.
template <class F>
[[gnu::flatten]] void take_rows(std::int64_t begin, std::int64_t end, const F& f) {
  for (std::int64_t row = begin; row < end; ++row) f(row);
}
}  // namespace detail

/// Calls f(row) for every row of n elements, in parallel.
template <class F>
void for_each_row(std::int64_t rows, std::int64_t n, const F& f) {
  parallel_for(rows, std::max<std::int64_t>(1, elements_per_chunk / std::max<std::int64_t>(1, n)),
               [&](std::int64_t begin, std::int64_t end) { detail::take_rows(begin, end, f); });
}

/// The largest lane. (Eigen's maxCoeff would store the block to memory first.)
template <class T>
T largest_lane(const Block<T>& block) {
  const Eigen::Array<T, 8, 1> of_8 = block.template head<8>().max(block.template tail<8>());
  const Eigen::Array<T, 4, 1> of_4 = of_8.template head<4>().max(of_8.template tail<4>());
  return std::max(std::max(of_4[0], of_4[1]), std::max(of_4[2], of_4[3]));
}

/// What is subtracted from a row before exp so that no finite row overflows: its largest element, or 0 if
/// that is infinite. So the exponentials of a row of -inf, where everything is hidden, add up to 0, and a NaN
/// or +inf reaches the sum.
template <class T>
T shift_of_row(const T* x, std::int64_t n) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  Block<T> top = Block<T>::Constant(lowest);
  for_each_block(n, [&](std::int64_t i, auto count) { top = top.max(load_part(x + i, count, lowest)); });
  const T largest = largest_lane(top);
  return std::isfinite(largest) ? largest : T(0);
}

/// The sum of exp(x_i - shift) over a row. Calls each(i, count, terms) for each block of its terms.
template <class T, class F>
double sum_exp(const T* x, std::int64_t n, T shift, const F& each) {
  Block<double> total = Block<double>::Zero();
  for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> shifted = load_part(x + i, count, -std::numeric_limits<T>::infinity()) - shift;
    const Block<T> terms = exp(shifted);
    each(i, count, terms);
    total += cast<double>(terms);
  });
  return total.sum();
}
template <class T>
double sum_exp(const T* x, std::int64_t n, T shift) {
  return sum_exp(x, n, shift, [](std::int64_t, auto, const Block<T>&) {});
}

/// log(total), where `total` is the sum of exp(x_i - shift). If one element has almost all of it, total - 1
/// has lost its digits, and the sum of the others is taken alone.
template <class T>
double log_of_sum_exp(const T* x, std::int64_t n, T shift, double total) {
  constexpr double enough = sizeof(T) == 4 ? 1e-8 : 1;
  if (!(total >= 1 && total - 1 < enough)) return std::log(total);
  Block<double> others = Block<double>::Zero();
  for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> shifted = load_part(x + i, count, -std::numeric_limits<T>::infinity()) - shift;
    const Block<double> terms = cast<double>(exp(shifted));
    for_each_lane([&](int k) { others[k] += shifted[k] == 0 ? 0.0 : terms[k]; });
  });
  return std::log1p(others.sum());
}

/// The weight of a +inf in the softmax of a row that holds one and no NaN, so that sum_exp is infinite: 1 if
/// it is the only one, to which softmax tends as that element grows, and else NaN. All others weigh 0.
template <class T>
T weight_of_infinity(const T* x, std::int64_t n) {
  const auto count = std::count(x, x + n, std::numeric_limits<T>::infinity());
  return count == 1 ? T(1) : std::numeric_limits<T>::quiet_NaN();
}

}  // namespace fovea::kernels
