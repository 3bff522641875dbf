#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "autograd/kernels/elementwise.h"

// Elementary functions of a block, in packets. Where a packet function is not right to the last bits
// (overflow, denormal results, NaN), single elements are computed by libm: which one does not depend on their
// neighbours.
namespace fovea::kernels {

namespace detail {
// y[i] = exact(x[i]) where x[i] is not in [low, high].
template <class T, class F>
void mend_outside(const Block<T>& x, T low, T high, Block<T>& y, F exact) {
  bool all_inside = true;
  for (int i = 0; i < block_size; ++i) all_inside &= (x[i] >= low) & (x[i] <= high);
  if (all_inside) return;
  for (int i = 0; i < block_size; ++i) {
    if (!(x[i] >= low && x[i] <= high)) y[i] = exact(x[i]);
  }
}
}  // namespace detail

template <class T>
Block<T> exp(const Block<T>& x) {
  constexpr T low = std::is_same_v<T, float> ? T(-87) : T(-708);
  constexpr T high = std::is_same_v<T, float> ? T(88) : T(709);
  Block<T> y = x.exp();
  detail::mend_outside(x, low, high, y,
                       [](T v) { return v == -std::numeric_limits<T>::infinity() ? T(0) : std::exp(v); });
  return y;
}

template <class T>
Block<T> log(const Block<T>& x) {
  Block<T> y = x.log();
  detail::mend_outside(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), y,
                       [](T v) { return std::log(v); });
  return y;
}

template <class T>
Block<T> tanh(const Block<T>& x) {
  Block<T> y = x.tanh();
  detail::mend_outside(x, T(-8), T(8), y, [](T v) { return std::tanh(v); });
  return y;
}

/// 1 / (1 + exp(-x)): right to rounding on both sides, since neither sum cancels.
template <class T>
Block<T> sigmoid(const Block<T>& x) {
  return 1 / (1 + exp<T>(-x));
}

template <class T>
Block<T> erf(const Block<T>& x) {
  Block<T> y;
  for (int i = 0; i < block_size; ++i) y[i] = std::erf(x[i]);
  return y;
}

}  // namespace fovea::kernels
