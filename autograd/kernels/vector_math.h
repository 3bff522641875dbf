#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "autograd/kernels/exp.h"

// Elementary functions of a block, in packets. Where a packet function is not right to the last bits
// (overflow, denormal results, NaN), single elements are computed by libm: which one does not depend on their
// neighbours.
namespace fovea::kernels {

namespace detail {
// y[i] = exact(x[i]) where x[i] is not in [low, high].
template <class T, class F>
void mend_outside(const Block<T>& x, T low, T high, Block<T>& y, F exact) {
  Block<T> outside;
  for_each_lane([&](int i) { outside[i] = ((x[i] >= low) & (x[i] <= high)) ? T(0) : T(1); });
  if (outside.sum() == 0) return;
  for (int i = 0; i < block_size; ++i) {
    if (!(x[i] >= low && x[i] <= high)) y[i] = exact(x[i]);
  }
}
}  // namespace detail

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
