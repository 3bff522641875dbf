#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/autograd/tensor/tensor.h"
#include "tests/support/catch.h"

namespace fovea {

/// The largest |a - b|, or NaN if there is one; shapes must be the same.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::abs(x[i] - y[i]);
    if (std::isnan(difference)) return difference;
    worst = std::max(worst, difference);
  }
  return worst;
}

inline void check_close(const Tensor& a, const Tensor& b, double tolerance) {
  CHECK(largest_difference(a, b) <= tolerance);
}

}  // namespace fovea
