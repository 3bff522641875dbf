#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

TEST_CASE("erf of f32 is the nearest number or its neighbour, from the smallest to where it is 1") {
  // Every 9,973rd of the positive numbers up to 8, which reach from 1e-45 on.
  std::vector<double> x;
  const std::uint32_t end = std::bit_cast<std::uint32_t>(8.0F);
  for (std::uint32_t bits = 1; bits < end; bits += 9973) x.push_back(std::bit_cast<float>(bits));
  const auto n = static_cast<std::int64_t>(x.size());
  const std::vector<double> y = erf(from_values(x, {n})).to_vector();
  const std::vector<double> negative = erf(-from_values(x, {n})).to_vector();
  std::int64_t far = 0, not_odd = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto nearest = static_cast<float>(std::erf(x[i]));
    const auto found = static_cast<float>(y[i]);
    far += found < std::nextafter(nearest, 0.0F) || found > std::nextafter(nearest, 2.0F);
    not_odd += negative[i] != -y[i];
  }
  CHECK(far == 0);
  CHECK(not_odd == 0);
}

TEST_CASE("erf of infinity is 1 or -1, and erf of NaN is NaN") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Dtype dtype : {f32, f64}) {
    const std::vector<double> x{infinity, -infinity, std::nan(""), 0.0, -0.0};
    const std::vector<double> y = erf(from_values(x, {5}, dtype)).to_vector();
    CHECK(y[0] == 1);
    CHECK(y[1] == -1);
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == 0);
    CHECK(std::signbit(y[4]));
  }
}
