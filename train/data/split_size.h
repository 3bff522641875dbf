#pragma once

#include <cmath>
#include <cstdint>

#include "autograd/base/fail.h"

namespace fovea::detail {

/// The number of items in a fraction of `size` items, rounded up. Throws: ValueError if it is 0 or all of
/// them.
inline std::int64_t validation_size(const char* items, std::int64_t size, double fraction) {
  // Rounding may make 0.7 * 10 a little more than 7, which must not become 8.
  const double part = std::ceil(fraction * static_cast<double>(size) - 1e-6);
  if (!(part >= 1 && part < static_cast<double>(size))) {
    fail<ValueError>(
        "[split] a fraction of {} of {} {} leaves one of the two parts empty: take another fraction or more "
        "{}",
        fraction, size, items, items);
  }
  return static_cast<std::int64_t>(part);
}

}  // namespace fovea::detail
