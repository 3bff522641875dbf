#include <cmath>
#include <vector>

#include "autograd/ops/reference.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

TEST_CASE("layer_norm of a small spread far from 0") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = tensor({40000, 40001, 40002, 40003}, dtype);
  for (const Tensor& y : {layer_norm(x, {}, {}, 1e-5), reference::layer_norm(x, {}, {}, 1e-5)}) {
    CHECK(y.at({0}) == Approx(-1.34164).margin(1e-5));
    CHECK(y.at({1}) == Approx(-0.44721).margin(1e-5));
    CHECK(y.at({2}) == Approx(0.44721).margin(1e-5));
    CHECK(y.at({3}) == Approx(1.34164).margin(1e-5));
  }
}

TEST_CASE("rows of layer_norm have mean 0 and variance 1, however long") {
  Rng rng(3);
  for (const std::int64_t n : {2, 17, 1000, 100'003}) {
    const Tensor y = to(layer_norm(10 + 3 * randn({3, n}, rng)), f64);
    for (const double value : mean(y, -1).to_vector()) CHECK(value == Approx(0).margin(1e-5));
    for (const double value : mean(y * y, -1).to_vector()) CHECK(value == Approx(1).margin(1e-4));
  }
}

TEST_CASE("layer_norm of a constant row is its bias") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor bias = tensor({1, 2, 3}, dtype);
  CHECK(layer_norm(full({3}, 7, dtype), ones({3}, dtype), bias).to_vector() == bias.to_vector());
}
