#include "fovea/layers/layer_norm.h"

#include <limits>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("LayerNorm: a large mean costs no precision", "[layers]") {
  const Dtype dtype = GENERATE(f32, f64);
  const LayerNorm layer = to(LayerNorm(4), dtype);
  const std::vector<double> y = layer(tensor({40000, 40001, 40002, 40003}, dtype)).to_vector();
  CHECK(y[0] == Approx(-1.34164).epsilon(1e-5));
  CHECK(y[1] == Approx(-0.44721).epsilon(1e-5));
  CHECK(y[2] == Approx(0.44721).epsilon(1e-5));
  CHECK(y[3] == Approx(1.34164).epsilon(1e-5));
}

TEST_CASE("LayerNorm: gain, bias and eps", "[layers]") {
  LayerNorm layer(2, 3.0);
  layer.gain.mutable_data<float>()[1] = 5;
  layer.bias.mutable_data<float>()[1] = 7;
  // Variance 1, so x - mean = -+1 is divided by sqrt(1 + 3).
  const std::vector<double> y = layer(tensor({{11, 13}})).to_vector();
  CHECK(y[0] == Approx(-0.5));
  CHECK(y[1] == Approx(0.5 * 5 + 7));
}

TEST_CASE("LayerNorm: gradients", "[layers]") {
  Rng rng(1);
  LayerNorm layer(5);
  layer.gain = parameter(randn({5}, rng));
  layer.bias = parameter(randn({5}, rng));
  const GradcheckReport report = gradcheck(layer, randn({2, 3, 5}, rng), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("LayerNorm: wrong sizes", "[layers]") {
  CHECK_THROWS_AS(LayerNorm(0), ValueError);
  CHECK_THROWS_AS(LayerNorm(3, -1e-5), ValueError);
  CHECK_THROWS_AS(LayerNorm(3, std::numeric_limits<double>::quiet_NaN()), ValueError);
  CHECK_THROWS_AS(LayerNorm(3)(zeros({2, 5})), ShapeError);
}

}  // namespace
}  // namespace fovea
