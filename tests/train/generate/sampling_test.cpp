#include "fovea/train/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Logits whose softmax has these probabilities.
Tensor logits_of(const std::vector<double>& p) {
  std::vector<double> z;
  for (const double each : p) z.push_back(std::log(each) + 3);
  return from_values(z, {static_cast<std::int64_t>(z.size())}, f64);
}

void check_probabilities(const Tensor& logits, const Sampling& sampling,
                         const std::vector<double>& expected) {
  const std::vector<double> p = token_probabilities(logits, sampling);
  REQUIRE(p.size() == expected.size());
  for (std::size_t id = 0; id < p.size(); ++id) {
    INFO("token " << id);
    CHECK(p[id] == Approx(expected[id]).epsilon(1e-12).margin(0));
  }
}

TEST_CASE("sampling: temperature", "[train]") {
  const Tensor logits = logits_of({0.1, 0.4, 0.2, 0.3});
  check_probabilities(logits, {}, {0.1, 0.4, 0.2, 0.3});
  // p^(1/T), scaled: squares for T = 1/2.
  check_probabilities(logits, {.temperature = 0.5}, {1 / 30.0, 16 / 30.0, 4 / 30.0, 9 / 30.0});
  check_probabilities(logits, {.temperature = 0}, {0, 1, 0, 0});
  check_probabilities(logits, {.temperature = 1e-300}, {0, 1, 0, 0});
  // Logits whose exponentials overflow every type.
  check_probabilities(tensor({1e30, 0, 1e30}), {}, {0.5, 0, 0.5});
}

TEST_CASE("sampling: each filter alone", "[train]") {
  const Tensor logits = logits_of({0.1, 0.4, 0.2, 0.3});
  check_probabilities(logits, {.top_k = 3}, {0, 4 / 9.0, 2 / 9.0, 3 / 9.0});
  check_probabilities(logits, {.top_k = 1}, {0, 1, 0, 0});
  check_probabilities(logits, {.top_k = 5}, {0.1, 0.4, 0.2, 0.3});
  check_probabilities(logits, {.top_p = 0.39}, {0, 1, 0, 0});
  check_probabilities(logits, {.top_p = 0.41}, {0, 4 / 7.0, 0, 3 / 7.0});
  check_probabilities(logits, {.top_p = 0.95}, {0.1, 0.4, 0.2, 0.3});
  check_probabilities(logits, {.min_p = 0.51}, {0, 4 / 7.0, 0, 3 / 7.0});
  check_probabilities(logits, {.min_p = 0.49}, {0, 4 / 9.0, 2 / 9.0, 3 / 9.0});
  check_probabilities(logits, {.min_p = 1}, {0, 1, 0, 0});
}

TEST_CASE("sampling: filters apply in order, each to the tokens that the one before has left", "[train]") {
  const Tensor logits = logits_of({0.1, 0.4, 0.2, 0.3});
  // 0.4 + 0.3 fall short of 0.75; among the three likeliest, 4/9 + 3/9 do not.
  check_probabilities(logits, {.top_p = 0.75}, {0, 4 / 9.0, 2 / 9.0, 3 / 9.0});
  check_probabilities(logits, {.top_k = 3, .top_p = 0.75}, {0, 4 / 7.0, 0, 3 / 7.0});
  // If min_p came first, 4/7 would be enough for top_p.
  check_probabilities(logits, {.top_p = 0.55, .min_p = 0.7}, {0, 4 / 7.0, 0, 3 / 7.0});
  // A temperature of 0.5 comes first and squares the probabilities: they are 16, 9, 4 and 1 of 30.
  check_probabilities(logits, {.temperature = 0.5, .top_p = 0.5}, {0, 1, 0, 0});
  check_probabilities(logits, {.top_p = 0.5}, {0, 4 / 7.0, 0, 3 / 7.0});
  check_probabilities(logits, {.temperature = 0.5, .min_p = 0.51}, {0, 16 / 25.0, 0, 9 / 25.0});
  check_probabilities(logits, {.temperature = 0.5, .min_p = 0.6}, {0, 1, 0, 0});
  check_probabilities(logits, {.temperature = 0.5, .top_k = 3, .top_p = 0.9, .min_p = 0.3},
                      {0, 16 / 25.0, 0, 9 / 25.0});
}

TEST_CASE("sampling: probabilities that add up to top_p are enough for it, however they are rounded",
          "[train]") {
  const auto kept = [](const Tensor& logits, const Sampling& sampling) {
    return std::ranges::count_if(token_probabilities(logits, sampling), [](double p) { return p > 0; });
  };
  for (const Dtype dtype : {f32, f64}) {
    CAPTURE(name_of(dtype));
    for (const int n : {5, 7, 10, 20, 1009}) {
      for (int k = 1; k <= n; k += 1 + n / 20) {
        CAPTURE(n, k);
        CHECK(kept(full({n}, 0.3, dtype), {.top_p = static_cast<double>(k) / n}) == k);
      }
    }
    const Tensor logits = to(logits_of({0.1, 0.4, 0.2, 0.3}), dtype);
    CHECK(kept(logits, {.top_p = 0.4}) == 1);
    CHECK(kept(logits, {.top_p = 0.7}) == 2);
    CHECK(kept(logits, {.top_p = 0.9}) == 3);
    CHECK(kept(logits, {.top_p = 1e-9}) == 1);
    CHECK(kept(logits, {.min_p = 0.25}) == 4);
    CHECK(kept(logits, {.min_p = 0.5}) == 3);
    CHECK(kept(logits, {.min_p = 0.75}) == 2);
  }
}

TEST_CASE("sampling: among equally likely tokens the lower id comes first", "[train]") {
  const Tensor even = tensor({7, 7, 7, 7, 7});
  check_probabilities(even, {.temperature = 0}, {1, 0, 0, 0, 0});
  check_probabilities(even, {.top_k = 2}, {0.5, 0.5, 0, 0, 0});
  check_probabilities(even, {.top_p = 0.5}, {1 / 3.0, 1 / 3.0, 1 / 3.0, 0, 0});
  check_probabilities(even, {.min_p = 1}, {0.2, 0.2, 0.2, 0.2, 0.2});
  check_probabilities(tensor({1, 9, 3, 9, 3}), {.temperature = 0}, {0, 1, 0, 0, 0});
  check_probabilities(logits_of({0.1, 0.2, 0.2, 0.3, 0.2}), {.top_k = 3}, {0, 2 / 7.0, 2 / 7.0, 3 / 7.0, 0});
}

TEST_CASE("sampling: a token with a logit of -inf is never drawn", "[train]") {
  const Tensor logits = tensor({-infinity, 0, -infinity, 0, -infinity});
  for (const Sampling& sampling :
       {Sampling{}, Sampling{.temperature = 100}, Sampling{.top_k = 4}, Sampling{.top_p = 0.99}}) {
    check_probabilities(logits, sampling, {0, 0.5, 0, 0.5, 0});
  }
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) CHECK(sample_token(logits, {}, rng) % 2 == 1);
}

TEST_CASE("sampling: tokens are drawn as often as they are likely", "[train]") {
  Rng weights(11);
  const Tensor logits = 2.0 * randn({23}, weights, f64);
  const Sampling sampling = GENERATE(Sampling{}, Sampling{.temperature = 1.7}, Sampling{.top_k = 7},
                                     Sampling{.temperature = 0.7, .top_p = 0.8}, Sampling{.min_p = 0.1});
  const std::vector<double> p = token_probabilities(logits, sampling);
  constexpr int draws = 20'000;
  std::vector<int> counts(p.size());
  Rng rng(5);
  for (int i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(sample_token(logits, sampling, rng))];
  double chi_square = 0;
  int kinds = 0;
  for (std::size_t id = 0; id < p.size(); ++id) {
    if (p[id] == 0) {
      CHECK(counts[id] == 0);
    } else {
      const double expected = draws * p[id];
      chi_square += (counts[id] - expected) * (counts[id] - expected) / expected;
      ++kinds;
    }
  }
  REQUIRE(kinds > 2);
  // Chi-square has mean kinds - 1 and standard deviation sqrt(2 (kinds - 1)).
  CHECK(chi_square < kinds - 1 + 4 * std::sqrt(2.0 * (kinds - 1)));
}

TEST_CASE("sampling: each token takes one random number, compared with sums in the order of ids", "[train]") {
  const Tensor logits = logits_of({0.1, 0.4, 0.2, 0.3});
  Rng rng(9), twin(9);
  for (int i = 0; i < 100; ++i) {
    const double draw = twin.uniform();
    const std::int64_t expected = draw < 0.1 ? 0 : draw < 0.5 ? 1 : draw < 0.7 ? 2 : 3;
    CHECK(sample_token(logits, {}, rng) == expected);
  }
  CHECK(sample_token(logits, {.temperature = 0}, rng) == 1);
  twin.uniform();
  CHECK(rng.state() == twin.state());
}

TEST_CASE("sampling: options outside their range and logits without a choice are refused", "[train]") {
  const Tensor logits = tensor({1, 2, 3});
  const auto refuses = [&](const Sampling& sampling, const std::string& text) {
    CHECK_THROWS_AS(token_probabilities(logits, sampling), ValueError);
    CHECK_THROWS_WITH(token_probabilities(logits, sampling), ContainsSubstring(text));
  };
  for (const double wrong : {-1e-9, infinity, nan}) refuses({.temperature = wrong}, "temperature is ");
  refuses({.top_k = -1}, "top_k is -1");
  for (const double wrong : {0.0, -0.1, 1.001, nan}) refuses({.top_p = wrong}, "top_p is ");
  for (const double wrong : {-0.1, 1.001, nan}) refuses({.min_p = wrong}, "min_p is ");

  const auto probabilities_of = [](const Tensor& z) { return token_probabilities(z, {.temperature = 0}); };
  CHECK_THROWS_AS(probabilities_of(tensor({1, nan})), NonFiniteError);
  CHECK_THROWS_WITH(probabilities_of(tensor({1, nan})), ContainsSubstring("logit of token 1 is nan"));
  CHECK_THROWS_WITH(probabilities_of(tensor({infinity, 0})), ContainsSubstring("logit of token 0 is inf"));
  CHECK_THROWS_AS(probabilities_of(full({3}, -infinity)), NonFiniteError);
  CHECK_THROWS_WITH(probabilities_of(full({3}, -infinity)), ContainsSubstring("all 3 logits are -inf"));
  CHECK_THROWS_AS(probabilities_of(ones({2, 3})), ShapeError);
  CHECK_THROWS_AS(probabilities_of(ones({0})), ShapeError);
}

}  // namespace
}  // namespace fovea
