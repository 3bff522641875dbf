#pragma once

#include "autograd/kernels/elementwise.h"

namespace fovea::kernels {

/// Calls f(i) for every lane of a block, as vector code where f is plain arithmetic, comparisons and choices
/// on elements i of blocks. Without the pragmas, compilers unroll such a loop when it stands inside another
/// one, before they think of vectors.
template <class F>
void for_each_lane(const F& f) {
#if defined(__clang__)
#pragma clang loop unroll(disable) vectorize(enable)
#elif defined(__GNUC__)
#pragma GCC unroll 1
#endif
  for (int i = 0; i < block_size; ++i) f(i);
}

/// The same numbers in another type; sums are kept in double. (Eigen's cast goes element by element.)
template <class To, class From>
Block<To> cast(const Block<From>& block) {
  Block<To> result;
  for_each_lane([&](int i) { result[i] = static_cast<To>(block[i]); });
  return result;
}

}  // namespace fovea::kernels
