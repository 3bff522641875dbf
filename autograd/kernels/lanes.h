#pragma once

#include "autograd/kernels/elementwise.h"

namespace fovea::kernels {

/// Calls f(i) for every lane i of a block. The loop becomes vector instructions if f consists of arithmetic,
/// comparisons and choices between elements i of blocks; the attribute inlines the functions that f calls.
/// Without the pragmas, compilers would unroll the loop where it is nested in another one, and then no longer
/// find the vector instructions.
template <class F>
[[gnu::flatten]] void for_each_lane(const F& f) {
#if defined(__clang__)
#pragma clang loop unroll(disable) vectorize(enable)
#elif defined(__GNUC__)
#pragma GCC unroll 1
#endif
  for (int i = 0; i < block_size; ++i) f(i);
}

/// Converts every lane to another type, as for sums, which are kept in double. (Eigen's cast is not
/// vectorised.)
template <class To, class From>
Block<To> cast(const Block<From>& block) {
  Block<To> result;
  for_each_lane([&](int i) { result[i] = static_cast<To>(block[i]); });
  return result;
}

}  // namespace fovea::kernels
