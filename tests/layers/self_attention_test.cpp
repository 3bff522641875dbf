#include "fovea/layers/self_attention.h"

#include <cmath>

#include "autograd/graph/kernel_runs.h"
#include "fovea/autograd/base/error.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "fovea/layers/tap.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

constexpr std::int64_t B = 2, T = 7, C = 5, D = 3;

SelfAttention exact_layer(Rng& rng) { return to(SelfAttention(C, D, rng), f64); }

// (x W)[b, t, column], by a loop.
double projected(const Tensor& x, const Tensor& W, std::int64_t b, std::int64_t t, std::int64_t column) {
  double value = 0;
  for (std::int64_t c = 0; c < C; ++c) value += x.at({b, t, c}) * W.at({c, column});
  return value;
}

// The weights of one query over the keys [0, seen), by loops.
std::vector<double> weights_by_hand(const SelfAttention& layer, const Tensor& x, std::int64_t b,
                                    std::int64_t query, std::int64_t seen) {
  std::vector<double> weights;
  double total = 0;
  for (std::int64_t key = 0; key < seen; ++key) {
    double score = 0;
    for (std::int64_t d = 0; d < D; ++d) {
      score += projected(x, layer.Wq, b, query, d) * projected(x, layer.Wk, b, key, d);
    }
    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(D))));
    total += weights.back();
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

TEST_CASE("SelfAttention: against explicit loops", "[layers]") {
  Rng rng(1);
  const SelfAttention layer = exact_layer(rng);
  const Tensor x = randn({B, T, C}, rng, f64);
  const bool causal = GENERATE(true, false);
  const auto [output, weights] = layer.with_weights(x, causal ? Mask::causal() : Mask());
  REQUIRE(output.shape() == Shape{B, T, C});
  REQUIRE(weights.shape() == Shape{B, T, T});
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t i = 0; i < T; ++i) {
      const std::int64_t seen = causal ? i + 1 : T;
      const std::vector<double> row = weights_by_hand(layer, x, b, i, seen);
      for (std::int64_t j = 0; j < T; ++j) {
        const double expected = j < seen ? row[static_cast<std::size_t>(j)] : 0;
        CHECK(weights.at({b, i, j}) == Approx(expected).margin(1e-12));
      }
      for (std::int64_t c = 0; c < C; ++c) {
        double expected = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          for (std::int64_t d = 0; d < D; ++d) {
            expected +=
                row[static_cast<std::size_t>(j)] * projected(x, layer.Wv, b, j, d) * layer.Wo.at({d, c});
          }
        }
        CHECK(output.at({b, i, c}) == Approx(expected).margin(1e-12));
      }
    }
  }
}

TEST_CASE("SelfAttention: the same as the function self_attention of its parameters", "[layers]") {
  Rng rng(1);
  const SelfAttention layer(C, D, rng);
  const Tensor x = randn({T, C}, rng);
  const Attention expected = self_attention(x, layer.Wq, layer.Wk, layer.Wv, layer.Wo);
  const Attention actual = layer.with_weights(x);
  CHECK(actual.output.to_vector() == expected.output.to_vector());
  CHECK(actual.weights.to_vector() == expected.weights.to_vector());
  CHECK(expected.weights.shape() == Shape{T, T});
}

TEST_CASE("SelfAttention: the fused kernel runs unless weights are asked for or tapped", "[layers]") {
  Rng rng(1);
  const SelfAttention layer = exact_layer(rng);
  const Tensor x = randn({B, T, C}, rng, f64);
  const std::int64_t before = runs_of("attention");
  const Tensor fused = layer(x);
  CHECK(runs_of("attention") == before + 1);
  const Tensor with_weights = layer.with_weights(x).output;
  Hooks hooks(layer);
  hooks.record("weights");
  const Tensor tapped = layer(x);
  CHECK(runs_of("attention") == before + 1);
  CHECK(hooks["weights"].shape() == Shape{B, 1, T, T});
  CHECK(tapped.to_vector() == with_weights.to_vector());
  CHECK(max(abs(fused - with_weights)).item() < 1e-14);
}

TEST_CASE("SelfAttention: the future has no influence on the past", "[layers]") {
  Rng rng(1);
  const SelfAttention layer(C, D, rng);
  Tensor x = randn({B, T, C}, rng);
  const Tensor before = layer(x);
  constexpr std::int64_t changed = 4;
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t c = 0; c < C; ++c) {
      x.mutable_data<float>()[(b * T + changed) * C + c] = 1e3F;
    }
  }
  const Tensor after = layer(x);
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t c = 0; c < C; ++c) {
      for (std::int64_t t = 0; t < changed; ++t) CHECK(after.at({b, t, c}) == before.at({b, t, c}));
      CHECK(after.at({b, changed, c}) != before.at({b, changed, c}));
    }
  }
}

TEST_CASE("SelfAttention: a query that sees no key gets zeros", "[layers]") {
  Rng rng(1);
  const SelfAttention layer(C, D, rng);
  const auto [output, weights] = layer.with_weights(randn({B, T, C}, rng), Mask::lengths({T, 0}));
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t c = 0; c < C; ++c) CHECK(output.at({1, t, c}) == 0);
    CHECK(output.at({0, t, 0}) != 0);
  }
}

TEST_CASE("SelfAttention: hooks read and replace its weights", "[layers]") {
  Rng rng(1);
  const SelfAttention layer = exact_layer(rng);
  const Tensor x = randn({B, T, C}, rng, f64);
  const Tensor map = layer.with_weights(x).weights;
  Hooks hooks(layer);
  hooks.record("*").replace("weights", [](const Tapped& t) { return zeros(t.value.shape(), f64); });
  const Attention seen = layer.with_weights(x);
  CHECK(hooks["weights"].shape() == Shape{B, 1, T, T});
  CHECK(hooks["weights"].to_vector() == map.to_vector());
  CHECK(softmax(hooks["scores"]).to_vector() == map.to_vector());
  for (const double y : seen.output.to_vector()) CHECK(y == 0);
}

TEST_CASE("SelfAttention: gradients", "[layers]") {
  Rng rng(1);
  const GradcheckReport report = gradcheck(SelfAttention(C, D, rng), randn({B, T, C}, rng), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.tensors[0].input == "Wq");
}

TEST_CASE("SelfAttention: wrong sizes", "[layers]") {
  Rng rng(1);
  CHECK_THROWS_AS(SelfAttention(0, 3, rng), ValueError);
  CHECK_THROWS_AS(SelfAttention(3, 0, rng), ValueError);
  CHECK_THROWS_AS(SelfAttention(C, D, rng)(zeros({B, T, 11})), ShapeError);
}

}  // namespace
}  // namespace fovea
