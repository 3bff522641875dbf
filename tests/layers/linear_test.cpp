#include "fovea/layers/linear.h"

#include <algorithm>
#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("Linear: x W + b, element by element", "[layers]") {
  Rng rng(1);
  Linear layer(5, 3, rng);
  layer.b.mutable_data<float>()[1] = 0.5F;
  const Tensor x = randn({2, 7, 5}, rng);
  const Tensor y = layer(x);
  REQUIRE(y.shape() == Shape{2, 7, 3});
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t t = 0; t < 7; ++t) {
      for (std::int64_t o = 0; o < 3; ++o) {
        double expected = layer.b.at({o});
        for (std::int64_t i = 0; i < 5; ++i) expected += x.at({b, t, i}) * layer.W.at({i, o});
        CHECK(y.at({b, t, o}) == Approx(expected).margin(1e-6));
      }
    }
  }
}

TEST_CASE("Linear: without a bias it has one parameter", "[layers]") {
  Rng rng(1);
  const Linear layer(5, 3, rng, {.bias = false});
  CHECK_FALSE(layer.b.defined());
  CHECK(parameter_count(layer) == 15);
  CHECK(layer(zeros({2, 5})).to_vector() == std::vector<double>(6, 0.0));
  CHECK(gradcheck(layer, randn({2, 5}, rng)).passed());
}

TEST_CASE("Linear: initially W is uniform in +-1/sqrt(I) and b is 0", "[layers]") {
  Rng rng(1);
  const Linear layer(64, 1009, rng);
  const std::vector<double> W = layer.W.to_vector();
  const auto [low, high] = std::ranges::minmax(W);
  CHECK(low >= -0.125);
  CHECK(low < -0.1249);
  CHECK(high < 0.125);
  CHECK(high > 0.1249);
  double squares = 0;
  for (const double w : W) squares += w * w;
  CHECK(squares / static_cast<double>(W.size()) == Approx(0.125 * 0.125 / 3).epsilon(0.02));
  CHECK(layer.b.to_vector() == std::vector<double>(1009, 0.0));

  Rng again(1);
  CHECK(Linear(64, 1009, again).W.to_vector() == W);
}

TEST_CASE("Linear: gradients", "[layers]") {
  Rng rng(1);
  const GradcheckReport report = gradcheck(Linear(5, 3, rng), randn({2, 7, 5}, rng), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.tensors[0].input == "W");
  CHECK(report.tensors[1].input == "b");
  CHECK(report.tensors[2].input == "x");
}

TEST_CASE("Linear: wrong sizes", "[layers]") {
  Rng rng(1);
  CHECK_THROWS_WITH(Linear(0, 3, rng), ContainsSubstring("[Linear]") && ContainsSubstring("(0, 3)"));
  CHECK_THROWS_AS(Linear(3, -1, rng), ValueError);
  CHECK_THROWS_AS(Linear(5, 3, rng)(zeros({2, 7})), ShapeError);
  CHECK_THROWS_AS(Linear(5, 3, rng)(zeros({2, 5}, f64)), DtypeError);
}

}  // namespace
}  // namespace fovea
