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

constexpr std::int64_t V = 13, T = 7;
// The output is not tied to the embedding: tied logits favour the previous token, so greedy choices would
// hardly depend on the rest of the model.
const GptConfig tiny{
    .vocabulary = V, .context = T, .d_model = 8, .heads = 2, .layers = 3, .tied_output = false};

// A model with larger weights than initially, so that the past matters, in f64, so that no choice is as close
// as rounding.
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

// The tokens that follow from the model alone, which computes all logits again for each token.
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

TEST_CASE("generate: the cache changes no token, and the tokens follow from the model's own logits",
          "[train]") {
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
    // Texts that end within the context, at its end, one token beyond and far beyond; and prompts as long as
    // the context and longer.
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

TEST_CASE("generate: a model sees only the end of a prompt that is longer than its context", "[train]") {
  const Gpt model = lively(tiny);
  const Ids prompt{2, 5, 3, 12, 0, 7, 7, 1, 11};
  for (const bool cache : {true, false}) {
    const GenerateOptions options{.tokens = 5, .sampling = {.temperature = 0}, .cache = cache};
    CHECK(generated(model, prompt, options) == generated(model, {3, 12, 0, 7, 7, 1, 11}, options));
    CHECK(generated(model, prompt, options) != generated(model, {2, 5, 3, 12, 0, 7, 7}, options));
  }
}

TEST_CASE("generate: a function is called with the last ids, at most as many as the context", "[train]") {
  std::vector<Shape> seen;
  // The next id is the one 4 positions back, plus 1.
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

TEST_CASE("generate: a TrainMode scope around it brings neither dropout nor gradients", "[train]") {
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

TEST_CASE("generate: it ends with the stop token, or after as many tokens as asked for", "[train]") {
  const Gpt model = lively(tiny);
  const Ids prompt{1};
  const Ids all = generated(model, prompt, {.tokens = 40});
  REQUIRE(all.size() == 40);
  const std::int64_t stop = all[12];
  const auto end = std::ranges::find(all, stop) + 1;
  for (const bool cache : {true, false}) {
    CHECK(generated(model, prompt, {.tokens = 40, .stop = stop, .cache = cache}) == Ids(all.begin(), end));
  }
  // A stop token in the prompt ends nothing.
  CHECK(generated(model, {stop}, {.tokens = 2, .sampling = {.temperature = 0}, .stop = stop}).size() > 0);
  CHECK(generated(model, prompt, {.tokens = 0}).empty());
}

TEST_CASE("generate: on_token is called with each token, and may throw to end generation", "[train]") {
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

TEST_CASE("generate: a seed determines the tokens", "[train]") {
  const Gpt model = lively(tiny);
  const GenerateOptions options{.tokens = 29};
  CHECK(generated(model, {1}, options, 8) == generated(model, {1}, options, 8));
  CHECK(generated(model, {1}, options, 8) != generated(model, {1}, options, 9));
  // Generation in two halves, the second one from the Rng's saved state, gives the same tokens.
  Rng rng(8);
  const Ids first = generate(model, Ids{1}, {.tokens = 3}, rng);
  Ids prompt{1};
  prompt.insert(prompt.end(), first.begin(), first.end());
  Ids both = first;
  for (const std::int64_t id : generate(model, prompt, {.tokens = 26}, rng)) both.push_back(id);
  CHECK(both == generated(model, {1}, options, 8));
}

TEST_CASE("generate: bad input is refused before any token is chosen", "[train]") {
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
