#include "fovea/layers/rms_norm.h"

#include <cmath>
#include <limits>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("RmsNorm: gain and eps, and no centering", "[layers]") {
  RmsNorm layer(2, 3.5);
  layer.gain.mutable_data<float>()[1] = 5;
  // The mean of 9 and 16 is 12.5, so x is divided by 4.
  CHECK(layer(tensor({3, 4})).to_vector() == std::vector<double>{0.75, 5});
}

TEST_CASE("RmsNorm: equals LayerNorm for rows of mean 0", "[layers]") {
  const Tensor x = tensor({{-3, 1, 2}, {5, -7, 2}}, f64);
  const std::vector<double> y = to(RmsNorm(3), f64)(x).to_vector();
  const std::vector<double> expected = layer_norm(x).to_vector();
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("RmsNorm: gradients", "[layers]") {
  Rng rng(1);
  RmsNorm layer(5);
  layer.gain = parameter(randn({5}, rng));
  const GradcheckReport report = gradcheck(layer, randn({2, 3, 5}, rng), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("RmsNorm: wrong sizes", "[layers]") {
  CHECK_THROWS_AS(RmsNorm(0), ValueError);
  CHECK_THROWS_AS(RmsNorm(3, -1e-5), ValueError);
  CHECK_THROWS_AS(RmsNorm(3, std::numeric_limits<double>::quiet_NaN()), ValueError);
  CHECK_THROWS_AS(RmsNorm(3)(zeros({2, 5})), ShapeError);
}

}  // namespace
}  // namespace fovea
