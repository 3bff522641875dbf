#pragma once

#include <cmath>
#include <cstdint>

#include "autograd/base/fail.h"

namespace fovea::detail {

/// How many of `size` items are a fraction of them, rounded up. Throws: ValueError if they are none or all.
inline std::int64_t validation_size(const char* items, std::int64_t size, double fraction) {
  // 0.7 of 10 may be 7 + 1e-15, and is 7.
  const double part = std::ceil(fraction * static_cast<double>(size) - 1e-6);
  if (!(part >= 1 && part < static_cast<double>(size))) {
    fail<ValueError>("[split] validation {} of {} {} leaves one of the two parts empty: take 0.1, say",
                     fraction, size, items);
  }
  return static_cast<std::int64_t>(part);
}

}  // namespace fovea::detail
