#pragma once

#include <cstdint>

#include "autograd/base/parallel.h"

namespace fovea::detail {

/// Calls f(i) for each of the n elements of a parameter, on several threads.
template <class F>
void for_each_element(std::int64_t n, const F& f) {
  constexpr std::int64_t chunk = 1 << 14;
  kernels::parallel_for(n, chunk, [f](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace fovea::detail
