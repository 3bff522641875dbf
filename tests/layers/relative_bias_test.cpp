#include "fovea/layers/relative_bias.h"

#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("RelativeBias: one number for each head and bucket", "[layers]") {
  Rng rng(1);
  const RelativeBias layer(3, rng, {.buckets = 8, .max_distance = 20});
  CHECK(parameter_count(layer) == 24);
  const Tensor bias = layer(5, 7);
  REQUIRE(bias.shape() == Shape{3, 11});
  const Indices buckets = relative_buckets(5, 7, layer.buckets);
  for (std::int64_t h = 0; h < 3; ++h) {
    for (std::int64_t r = 0; r < 11; ++r) CHECK(bias.at({h, r}) == layer.table.at({buckets[r], h}));
  }
  // The query's own position and the nearest ones before it each have a bucket of their own.
  CHECK(buckets[6] == 0);
  CHECK(buckets[5] == 1);
}

TEST_CASE("Alibi: a slope for each head, and no parameters", "[layers]") {
  const Alibi layer(8);
  CHECK(parameter_count(layer) == 0);
  const Tensor bias = layer(1, 5, f64);
  REQUIRE(bias.shape() == Shape{8, 5});
  CHECK(bias.at({0, 4}) == 0);
  CHECK(bias.at({0, 1}) == Approx(-3 * std::pow(2, -1)));
  CHECK(bias.at({7, 1}) == Approx(-3 * std::pow(2, -8)));
}

TEST_CASE("RelativeBias: gradients through attention", "[layers]") {
  Rng rng(1);
  RelativeBias layer = to(RelativeBias(3, rng, {.buckets = 8, .max_distance = 20}), f64);
  const Tensor q = randn({1, 3, 5, 2}, rng, f64), k = randn({1, 3, 7, 2}, rng, f64);
  const auto f = [&](const Tensor& table) {
    layer.table = table;
    return attention(q, k, k, {.mask = Mask::causal(), .relative_bias = layer(5, 7)});
  };
  const GradcheckReport report = gradcheck(f, layer.table, {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("RelativeBias and Alibi: wrong sizes", "[layers]") {
  Rng rng(1);
  CHECK_THROWS_AS(RelativeBias(0, rng), ValueError);
  CHECK_THROWS_AS(RelativeBias(3, rng, {.buckets = 0}), ValueError);
  CHECK_THROWS_AS(Alibi(0), ValueError);
}

}  // namespace
}  // namespace fovea
