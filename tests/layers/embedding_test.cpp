#include "fovea/layers/embedding.h"

#include "fovea/autograd/ops.h"
#include "fovea/error.h"
#include "fovea/layers/gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("Embedding: the rows of its table", "[layers]") {
  Rng rng(1);
  const Embedding layer(7, 3, rng);
  CHECK(parameter_count(layer) == 21);
  const Indices ids{{6, 0}, {2, 2}, {1, 5}, {3, 4}, {0, 6}};
  const Tensor y = layer(ids);
  REQUIRE(y.shape() == Shape{5, 2, 3});
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t c = 0; c < 3; ++c) CHECK(y.at({i, j, c}) == layer.table.at({ids[i * 2 + j], c}));
    }
  }
  const GradcheckReport report = gradcheck(layer, ids);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("Embedding: its table starts as draws from N(0, 1)", "[layers]") {
  Rng rng(1);
  const std::vector<double> table = Embedding(101, 97, rng).table.to_vector();
  double total = 0;
  double squares = 0;
  for (const double value : table) {
    total += value;
    squares += value * value;
  }
  CHECK(total / static_cast<double>(table.size()) == Approx(0).margin(0.04));
  CHECK(squares / static_cast<double>(table.size()) == Approx(1).epsilon(0.05));
}

TEST_CASE("Embedding: wrong sizes and ids", "[layers]") {
  Rng rng(1);
  CHECK_THROWS_AS(Embedding(0, 3, rng), ValueError);
  CHECK_THROWS_AS(Embedding(3, 0, rng), ValueError);
  const Embedding layer(7, 3, rng);
  CHECK_THROWS_AS(layer(Indices{2, 7}), IndexError);
  CHECK_THROWS_WITH(layer(Indices{{0, 1}, {2, -1}}),
                    ContainsSubstring("-1") && ContainsSubstring("(1, 1)") && ContainsSubstring("7"));
}

}  // namespace
}  // namespace fovea
