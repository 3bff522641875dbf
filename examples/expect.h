#pragma once

#include <fmt/core.h>

#include <cstdio>

#include "fovea/fovea.h"

// What the longer examples check themselves with: they say on the standard error which result is wrong, and
// then end with status 1.

inline int failures = 0;

inline void expect(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "WRONG: {}\n", what);
  ++failures;
}

/// The largest difference between two tensors.
inline double distance(const fovea::Tensor& a, const fovea::Tensor& b) {
  return fovea::max(fovea::abs(a - b)).item();
}
