#include "fovea/train/generate/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Logits of these probabilities, up to a constant.
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
  // Logits whose exponentials no type holds.
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

TEST_CASE("sampling: filters apply in order, each to what the one before has left", "[train]") {
  const Tensor logits = logits_of({0.1, 0.4, 0.2, 0.3});
  // 0.4 + 0.3 fall short of 0.75; among the three likeliest, 4/9 + 3/9 do not.
  check_probabilities(logits, {.top_p = 0.75}, {0, 4 / 9.0, 2 / 9.0, 3 / 9.0});
  check_probabilities(logits, {.top_k = 3, .top_p = 0.75}, {0, 4 / 7.0, 0, 3 / 7.0});
  // Among what min_p leaves, 4/7 would be enough.
  check_probabilities(logits, {.top_p = 0.55, .min_p = 0.7}, {0, 4 / 7.0, 0, 3 / 7.0});
  // Temperature comes first: squares are 16, 9, 4, 1 of 30.
  check_probabilities(logits, {.temperature = 0.5, .top_p = 0.5}, {0, 1, 0, 0});
  check_probabilities(logits, {.top_p = 0.5}, {0, 4 / 7.0, 0, 3 / 7.0});
  check_probabilities(logits, {.temperature = 0.5, .min_p = 0.51}, {0, 16 / 25.0, 0, 9 / 25.0});
  check_probabilities(logits, {.temperature = 0.5, .min_p = 0.6}, {0, 1, 0, 0});
  check_probabilities(logits, {.temperature = 0.5, .top_k = 3, .top_p = 0.9, .min_p = 0.3},
                      {0, 16 / 25.0, 0, 9 / 25.0});
}

TEST_CASE("sampling: of equally likely tokens the lower id comes first", "[train]") {
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

TEST_CASE("sampling: tokens are as frequent as they are likely", "[train]") {
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
  // Mean and deviation are kinds - 1 and sqrt(2 (kinds - 1)).
  CHECK(chi_square < kinds - 1 + 4 * std::sqrt(2.0 * (kinds - 1)));
}

TEST_CASE("sampling: one draw for each token, taken by ids in ascending order", "[train]") {
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

TEST_CASE("sampling: options outside their range, and logits that leave no choice", "[train]") {
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

// Generation -------------------------------------------------------------------------------------------

constexpr std::int64_t V = 13, T = 7;
// Not tied: where logits favour the word before, greedy choices say little.
const GptConfig tiny{
    .vocabulary = V, .context = T, .d_model = 8, .heads = 2, .layers = 3, .tied_output = false};

// Larger weights than at first, so that the past matters; in f64, so that no choice is close to rounding.
Gpt lively(const GptConfig& config) {
  Rng rng(1);
  Gpt model(config, rng);
  for (TransformerBlock& block : model.blocks) block.initialise(0.4, 0.3, rng);
  for (auto& [name, tensor] : named_parameters(model)) {
    if (!name.ends_with("table") && name != "output.W") continue;
    for (float& w : std::span(tensor.mutable_data<float>(), static_cast<std::size_t>(tensor.numel())))
      w *= 50;
  }
  return to(model, f64);
}

Ids generated(const Gpt& model, const Ids& prompt, const GenerateOptions& options, std::uint64_t seed = 4) {
  Rng rng(seed);
  return generate(model, prompt, options, rng);
}

// What follows from the model alone: all logits anew for each token.
Ids expected_tokens(const Gpt& model, Ids ids, const GenerateOptions& options, std::uint64_t seed = 4) {
  const NoGrad no_grad;
  Rng rng(seed);
  Ids tokens;
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const auto length = std::min(static_cast<std::int64_t>(ids.size()), model.config.context);
    const Indices seen({1, length}, std::span(ids).last(static_cast<std::size_t>(length)));
    const Tensor last = reshape(slice(model(seen), 1, length - 1, length), {model.config.vocabulary});
    tokens.push_back(sample_token(last, options.sampling, rng));
    ids.push_back(tokens.back());
  }
  return tokens;
}

TEST_CASE("generate: the same tokens with the cache, without it, and by the model's own logits", "[train]") {
  GptConfig config = tiny;
  config.positions = GENERATE(Positions::none, Positions::learned, Positions::sine_cosine, Positions::rotary,
                              Positions::alibi, Positions::relative);
  const bool modern = GENERATE(false, true);
  if (modern) {
    config.block = {.attention = {.key_value_heads = 1, .bias = false, .window = 3, .qk_norm = true},
                    .norm = NormKind::rms,
                    .mlp = MlpKind::swiglu};
  }
  const Gpt model = lively(config);
  const LanguageModel function = [&](const Indices& ids) { return model(ids); };
  for (const Sampling& sampling : {Sampling{.temperature = 0}, Sampling{.temperature = 1.3, .top_k = 5}}) {
    // Within the context, up to its end and one beyond, far beyond; prompts as long as it and longer.
    for (const std::int64_t length : {1, 3, 7, 11}) {
      const Ids all{2, 5, 3, 12, 0, 7, 7, 1, 11, 4, 6};
      const Ids prompt(all.begin(), all.begin() + length);
      const GenerateOptions options{.tokens = 17, .sampling = sampling};
      const Ids expected = expected_tokens(model, prompt, options);
      CHECK(generated(model, prompt, options) == expected);
      CHECK(generated(model, prompt, {.tokens = 17, .sampling = sampling, .cache = false}) == expected);
      Rng rng(4);
      CHECK(generate(function, T, prompt, options, rng) == expected);
    }
  }
}

TEST_CASE("generate: of a prompt longer than the context the end counts", "[train]") {
  const Gpt model = lively(tiny);
  const Ids prompt{2, 5, 3, 12, 0, 7, 7, 1, 11};
  for (const bool cache : {true, false}) {
    const GenerateOptions options{.tokens = 5, .sampling = {.temperature = 0}, .cache = cache};
    CHECK(generated(model, prompt, options) == generated(model, {3, 12, 0, 7, 7, 1, 11}, options));
    CHECK(generated(model, prompt, options) != generated(model, {2, 5, 3, 12, 0, 7, 7}, options));
  }
}

TEST_CASE("generate: a function sees the last ids, as many as the context", "[train]") {
  std::vector<Shape> seen;
  // The next id is that of 4 positions back, plus 1.
  const LanguageModel model = [&](const Indices& ids) {
    seen.push_back(ids.shape());
    CHECK_FALSE(recording());
    CHECK_FALSE(training());
    const std::int64_t last = ids.numel() - 1;
    Tensor logits = zeros({1, ids.numel(), V});
    logits.mutable_data<float>()[last * V + (ids[std::max<std::int64_t>(0, last - 3)] + 1) % V] = 1;
    return logits;
  };
  const TrainMode training_around(1);
  Rng rng(1);
  const Ids prompt{5, 9, 2};
  const GenerateOptions options{.tokens = 6, .sampling = {.temperature = 0}};
  CHECK(generate(model, 4, prompt, options, rng) == Ids{6, 6, 10, 3, 7, 7});
  CHECK(seen == std::vector<Shape>{{1, 3}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}});
  CHECK(training());
}

TEST_CASE("generate: neither dropout nor gradients of a TrainMode scope around it", "[train]") {
  GptConfig config = tiny;
  config.block.dropout = config.block.attention.dropout = 0.5;
  const Gpt model = lively(config);
  const Ids prompt{1, 2};
  for (const bool cache : {true, false}) {
    const GenerateOptions options{.tokens = 9, .cache = cache};
    const Ids expected = generated(model, prompt, options);
    const TrainMode scope(3);
    CHECK(generated(model, prompt, options) == expected);
    CHECK(scope.rng().state() == Rng(3).state());
  }
}

TEST_CASE("generate: ends with the stop token, or with as many tokens as asked for", "[train]") {
  const Gpt model = lively(tiny);
  const Ids prompt{1};
  const Ids all = generated(model, prompt, {.tokens = 40});
  REQUIRE(all.size() == 40);
  const std::int64_t stop = all[12];
  const auto end = std::ranges::find(all, stop) + 1;
  for (const bool cache : {true, false}) {
    CHECK(generated(model, prompt, {.tokens = 40, .stop = stop, .cache = cache}) == Ids(all.begin(), end));
  }
  // One in the prompt ends nothing.
  CHECK(generated(model, {stop}, {.tokens = 2, .sampling = {.temperature = 0}, .stop = stop}).size() > 0);
  CHECK(generated(model, prompt, {.tokens = 0}).empty());
}

TEST_CASE("generate: tokens are streamed as they are chosen, and a listener may end it", "[train]") {
  const Gpt model = lively(tiny);
  Ids streamed;
  GenerateOptions options{.tokens = 11, .on_token = [&](std::int64_t id) {
                            CHECK(recording());
                            streamed.push_back(id);
                          }};
  const Ids tokens = generated(model, {1, 2}, options);
  CHECK(streamed == tokens);

  streamed.clear();
  options.on_token = [&](std::int64_t id) {
    streamed.push_back(id);
    if (streamed.size() == 3) throw std::runtime_error("enough");
  };
  CHECK_THROWS_WITH(generated(model, {1, 2}, options), "enough");
  CHECK(streamed == Ids(tokens.begin(), tokens.begin() + 3));
}

TEST_CASE("generate: one seed gives the same tokens, and another others", "[train]") {
  const Gpt model = lively(tiny);
  const GenerateOptions options{.tokens = 29};
  CHECK(generated(model, {1}, options, 8) == generated(model, {1}, options, 8));
  CHECK(generated(model, {1}, options, 8) != generated(model, {1}, options, 9));
  // From the Rng's state, two halves are the whole.
  Rng rng(8);
  const Ids first = generate(model, Ids{1}, {.tokens = 3}, rng);
  Ids prompt{1};
  prompt.insert(prompt.end(), first.begin(), first.end());
  Ids both = first;
  for (const std::int64_t id : generate(model, prompt, {.tokens = 26}, rng)) both.push_back(id);
  CHECK(both == generated(model, {1}, options, 8));
}

TEST_CASE("generate: bad input is named before any token is chosen", "[train]") {
  const Gpt model = lively(tiny);
  int chosen = 0;
  const auto count = [&](std::int64_t) { ++chosen; };
  CHECK_THROWS_AS(generated(model, {}, {.on_token = count}), ValueError);
  CHECK_THROWS_WITH(generated(model, {}, {}), ContainsSubstring("begin with a start token"));
  CHECK_THROWS_WITH(generated(model, {1}, {.tokens = -1}), ContainsSubstring("tokens is -1"));
  CHECK_THROWS_WITH(generated(model, {1}, {.tokens = 0, .sampling = {.top_k = -2}}),
                    ContainsSubstring("top_k is -2"));
  CHECK_THROWS_AS(generated(model, {1, V}, {.on_token = count}), IndexError);
  for (const std::int64_t stop : {std::int64_t{-1}, V}) {
    CHECK_THROWS_AS(generated(model, {1}, {.stop = stop, .on_token = count}), IndexError);
    CHECK_THROWS_WITH(generated(model, {1}, {.stop = stop}),
                      ContainsSubstring("outside the vocabulary of 13"));
  }

  Rng rng(1);
  const Ids prompt{1, 2};
  const auto with_logits = [&](const Shape& shape, std::int64_t context = T) {
    return generate([&](const Indices&) { return ones(shape); }, context, prompt, {.on_token = count}, rng);
  };
  CHECK_THROWS_WITH(with_logits({1, 2, V}, 0), ContainsSubstring("context is 0"));
  for (const Shape& shape : {Shape{2, V}, Shape{1, 1, V}, Shape{2, 2, V}, Shape{1, 2, V, 1}}) {
    CHECK_THROWS_AS(with_logits(shape), ShapeError);
    CHECK_THROWS_WITH(with_logits(shape), ContainsSubstring("(1, 2, V) expected for ids (1, 2)"));
  }
  CHECK_THROWS_AS(with_logits({1, 2, 0}), ShapeError);
  CHECK(chosen == 0);
  CHECK(rng.state() == Rng(1).state());
}

}  // namespace
}  // namespace fovea
