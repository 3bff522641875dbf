#include "fovea/layers/positions.h"

#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("sine_cosine_positions: values computed by hand, for an odd width", "[layers]") {
  const Tensor P = sine_cosine_positions(3, 5, f64);
  REQUIRE(P.shape() == Shape{3, 5});
  // Rates 1, 10000^(-2/5) = 0.025118864, 10000^(-4/5) = 0.000630957.
  const std::vector<double> expected{
      0,           1,
      0,           1,
      0,  //
      0.841470985, 0.540302306,
      0.025116223, 0.999684538,
      0.000630957,  //
      0.909297427, -0.416146837,
      0.050216599, 0.998738351,
      0.001261915,
  };
  const std::vector<double> found = P.to_vector();
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-9));
}

TEST_CASE("positions: those after an offset equal the end of the whole sequence", "[layers]") {
  Rng rng(1);
  const Tensor x = randn({2, 7, 5}, rng);
  const auto rest = [](const Tensor& t) { return slice(t, -2, 4, 7); };
  const SineCosinePositions fixed(5);
  CHECK(fixed(rest(x), 4).to_vector() == rest(fixed(x)).to_vector());
  const LearnedPositions learned(7, 5, rng);
  CHECK(learned(rest(x), 4).to_vector() == rest(learned(x)).to_vector());
  CHECK_THROWS_WITH(learned(rest(x), 5), ContainsSubstring("positions 5 to 7, and 7 are learned"));
  CHECK_THROWS_AS(learned(x, -1), ShapeError);
}

TEST_CASE("sine_cosine_positions: even width, width 1, no positions", "[layers]") {
  const Tensor P = sine_cosine_positions(2, 4, f64);
  CHECK(P.at({1, 2}) == Approx(std::sin(0.01)).margin(1e-12));
  CHECK(P.at({1, 3}) == Approx(std::cos(0.01)).margin(1e-12));
  CHECK(sine_cosine_positions(3, 1, f64).at({2, 0}) == Approx(std::sin(2.0)));
  CHECK(sine_cosine_positions(0, 5).shape() == Shape{0, 5});
  CHECK_THROWS_AS(sine_cosine_positions(-1, 5), ShapeError);
}

TEST_CASE("SineCosinePositions: added to every sequence, of any length", "[layers]") {
  Rng rng(1);
  const SineCosinePositions layer(5);
  CHECK(parameter_count(layer) == 0);
  const Tensor x = randn({2, 1201, 5}, rng);
  const Tensor y = layer(x);
  const Tensor P = sine_cosine_positions(1201, 5);
  CHECK(y.at({1, 1200, 3}) == Approx(x.at({1, 1200, 3}) + P.at({1200, 3})));
  CHECK(y.at({0, 7, 4}) == Approx(x.at({0, 7, 4}) + P.at({7, 4})));
  CHECK(layer(zeros({3, 5}, f64)).dtype() == f64);
  CHECK(gradcheck(layer, randn({2, 3, 5}, rng)).passed());
}

TEST_CASE("LearnedPositions: adds the first T rows of the table", "[layers]") {
  Rng rng(1);
  const LearnedPositions layer(7, 5, rng);
  CHECK(parameter_count(layer) == 35);
  const Tensor x = randn({2, 3, 5}, rng);
  const Tensor y = layer(x);
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t c = 0; c < 5; ++c) {
      CHECK(y.at({1, t, c}) == Approx(x.at({1, t, c}) + layer.table.at({t, c})));
    }
  }
  CHECK(layer(zeros({7, 5})).to_vector() == layer.table.to_vector());
  const GradcheckReport report = gradcheck(layer, x);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("positions: sizes that do not fit", "[layers]") {
  Rng rng(1);
  const LearnedPositions learned(7, 5, rng);
  CHECK_THROWS_WITH(learned(zeros({2, 11, 5})), ContainsSubstring("positions 0 to 10, and 7 are learned"));
  CHECK_THROWS_AS(learned(zeros({2, 3, 1})), ShapeError);
  CHECK_THROWS_AS(SineCosinePositions(5)(zeros({2, 3, 1})), ShapeError);
  CHECK_THROWS_AS(SineCosinePositions(5)(zeros({5})), ShapeError);
  CHECK_THROWS_AS(SineCosinePositions(0), ValueError);
  CHECK_THROWS_AS(LearnedPositions(0, 5, rng), ValueError);
}

}  // namespace
}  // namespace fovea
