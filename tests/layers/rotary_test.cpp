#include "fovea/layers/rotary.h"

#include <cmath>
#include <cstdlib>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

// q k^T for every pair of positions.
Tensor scores(const Rotary& turn, const Tensor& q, const Tensor& k, std::int64_t q_at, std::int64_t k_at) {
  return matmul(turn(q, q_at), transpose(turn(k, k_at)));
}

double largest_difference(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); }

TEST_CASE("Rotary: scores depend on the difference of positions only", "[layers]") {
  const auto layout = GENERATE(RotaryLayout::halves, RotaryLayout::adjacent);
  const Dtype dtype = GENERATE(f32, f64);
  const double tolerance = dtype == f32 ? 2e-5 : 1e-11;
  Rng rng(3);
  const Rotary turn(14, {.layout = layout, .dimensions = 10});
  const Tensor q = randn({7, 14}, rng, dtype), k = randn({11, 14}, rng, dtype);
  const Tensor at_start = scores(turn, q, k, 0, 0);
  for (const std::int64_t shift : {1, 97, 10'007}) {
    CHECK(largest_difference(scores(turn, q, k, shift, shift), at_start) < tolerance);
  }
  CHECK(largest_difference(scores(turn, q, k, 1, 0), at_start) > 0.1);
  CHECK(largest_difference(scores(turn, q, k, 5, 2), scores(turn, q, k, 104, 101)) < tolerance);
}

TEST_CASE("Rotary: position 0 is unchanged, and each pair keeps its length", "[layers]") {
  Rng rng(3);
  const Tensor x = randn({3, 5, 6}, rng, f64);
  const Tensor y = Rotary(6, {.layout = RotaryLayout::adjacent})(x);
  for (std::int64_t c = 0; c < 6; ++c) CHECK(y.at({2, 0, c}) == x.at({2, 0, c}));
  CHECK(std::hypot(y.at({1, 4, 2}), y.at({1, 4, 3})) == Approx(std::hypot(x.at({1, 4, 2}), x.at({1, 4, 3}))));
}

TEST_CASE("Rotary: a step with an offset equals that row of the whole sequence", "[layers]") {
  Rng rng(3);
  const Rotary turn(6);
  const Tensor x = randn({2, 7, 6}, rng);
  const Tensor whole = turn(x);
  for (std::int64_t t = 0; t < 7; ++t) {
    CHECK(turn(slice(x, 1, t, t + 1), t).to_vector() == slice(whole, 1, t, t + 1).to_vector());
  }
}

TEST_CASE("convert_rotary_layout: converted weights give the same scores under the other pairing",
          "[layers]") {
  constexpr std::int64_t heads = 3, d = 10, channels = 5, length = 7;
  const auto from = GENERATE(RotaryLayout::halves, RotaryLayout::adjacent);
  const auto dimensions = GENERATE(std::optional<std::int64_t>(), std::optional<std::int64_t>(6));
  const RotaryLayout other = from == RotaryLayout::halves ? RotaryLayout::adjacent : RotaryLayout::halves;
  Rng rng(5);
  const Tensor x = randn({length, channels}, rng, f64);
  const Tensor Wq = randn({channels, heads * d}, rng, f64), Wk = randn({channels, heads * d}, rng, f64);
  const Tensor bq = randn({heads * d}, rng, f64);
  const auto all_scores = [&](const Tensor& Wq, const Tensor& Wk, const Tensor& bq, RotaryLayout layout) {
    const Rotary turn(d, {.layout = layout, .dimensions = dimensions});
    const auto by_head = [&](const Tensor& x) { return transpose(reshape(x, {length, heads, d}), 0, 1); };
    return matmul(turn(by_head(linear(x, Wq, bq))), transpose(turn(by_head(matmul(x, Wk)))));
  };
  const auto converted = [&](const Tensor& W) {
    return convert_rotary_layout(W, heads, from, other, dimensions);
  };
  const Tensor before = all_scores(Wq, Wk, bq, from);
  CHECK(largest_difference(all_scores(converted(Wq), converted(Wk), converted(bq), other), before) < 1e-12);
  CHECK(largest_difference(all_scores(Wq, Wk, bq, other), before) > 0.1);
  const Tensor back = convert_rotary_layout(converted(Wq), heads, other, from, dimensions);
  CHECK(back.to_vector() == Wq.to_vector());
}

TEST_CASE("Rotary: gradients", "[layers]") {
  Rng rng(1);
  const GradcheckReport report = gradcheck(Rotary(6), randn({2, 3, 6}, rng), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

// The attention score of a unit vector with itself at a distance: cos(angle) of its only non-zero pair.
double score_of_pair(std::int64_t pair, std::int64_t distance, const RotaryOptions& options) {
  const Rotary turn(10, options);
  const Tensor unit = from_values(
      [&] {
        std::vector<double> values(10, 0.0);
        values[static_cast<std::size_t>(pair)] = 1;
        return values;
      }(),
      {1, 10}, f64);
  return scores(turn, unit, unit, distance, 0).item();
}

TEST_CASE("Rotary: linear scaling squeezes longer sequences into the trained range", "[layers]") {
  const RotaryOptions plain, scaled{.scaling = RotaryScaling::linear, .factor = 3};
  for (const std::int64_t pair : {0, 1, 4}) {
    for (const std::int64_t distance : {1, 7, 1009}) {
      CHECK(score_of_pair(pair, 3 * distance, scaled) == Approx(score_of_pair(pair, distance, plain)));
    }
  }
  // Between the trained positions: a third of the first pair's angle of 1 radian.
  CHECK(score_of_pair(0, 1, scaled) == Approx(std::cos(1.0 / 3)));
}

TEST_CASE("Rotary: NTK scaling keeps the fastest pair and slows the slowest by the factor", "[layers]") {
  const RotaryOptions plain, scaled{.scaling = RotaryScaling::ntk, .factor = 3};
  for (const std::int64_t distance : {1, 7, 1009}) {
    CHECK(score_of_pair(0, distance, scaled) == Approx(score_of_pair(0, distance, plain)));
    CHECK(score_of_pair(4, 3 * distance, scaled) == Approx(score_of_pair(4, distance, plain)));
    // Pair i of 5 is slowed by factor^(i/4).
    CHECK(score_of_pair(2, distance, scaled) ==
          Approx(std::cos(static_cast<double>(distance) * std::pow(10000.0, -2.0 / 5) / std::sqrt(3.0))));
  }
}

TEST_CASE("Rotary: a factor without scaling, and NTK scaling of a single pair, change nothing", "[layers]") {
  CHECK(score_of_pair(3, 7, {.factor = 3}) == score_of_pair(3, 7, {}));
  CHECK(score_of_pair(0, 7, {.dimensions = 2, .scaling = RotaryScaling::ntk, .factor = 3}) ==
        score_of_pair(0, 7, {.dimensions = 2}));
}

TEST_CASE("Rotary: the constructor refuses odd sizes, and the call other head sizes", "[layers]") {
  CHECK_THROWS_AS(Rotary(7), ValueError);
  CHECK_THROWS_WITH(Rotary(7), ContainsSubstring("[Rotary]") && ContainsSubstring("7 of 7"));
  CHECK_THROWS_AS(Rotary(0), ValueError);
  CHECK_THROWS_AS(Rotary(6, {.dimensions = 3}), ValueError);
  CHECK_THROWS_AS(Rotary(6, {.dimensions = 8}), ValueError);
  CHECK_THROWS_AS(Rotary(6, {.base = -1}), ValueError);
  CHECK_THROWS_AS(Rotary(6, {.scaling = RotaryScaling::ntk, .factor = 0}), ValueError);
  CHECK_NOTHROW(Rotary(7, {.dimensions = 6}));
  CHECK_THROWS_AS(Rotary(6)(zeros({3, 4})), ShapeError);
  CHECK_THROWS_AS(Rotary(6)(zeros({6})), ShapeError);
}

}  // namespace
}  // namespace fovea
