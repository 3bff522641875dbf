#include "fovea/layers/gpt.h"

#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/state.h"
#include "fovea/layers/tap.h"
#include "tests/support/catch.h"
#include "tests/support/close.h"

namespace fovea {
namespace {

constexpr std::int64_t V = 13, T = 7;
const GptConfig tiny{.vocabulary = V, .context = T, .d_model = 8, .heads = 2, .layers = 3};

GptConfig with(Positions positions) {
  GptConfig config = tiny;
  config.positions = positions;
  return config;
}

Positions every_scheme() {
  return GENERATE(Positions::none, Positions::learned, Positions::sine_cosine, Positions::rotary,
                  Positions::alibi, Positions::relative);
}

Indices draw_ids(const Shape& shape, std::int64_t vocabulary, std::uint64_t seed = 5) {
  Rng rng(seed);
  return Indices(shape, [&](std::int64_t* out) {
    for (std::int64_t i = 0; i < numel(shape); ++i) out[i] = rng.uniform_int(vocabulary);
  });
}

Indices columns(const Indices& ids, std::int64_t begin, std::int64_t end) {
  return Indices({ids.size(0), end - begin}, [&](std::int64_t* out) {
    for (std::int64_t b = 0; b < ids.size(0); ++b) {
      for (std::int64_t t = begin; t < end; ++t) *out++ = ids[b * ids.size(1) + t];
    }
  });
}

// Larger weights than the initial ones, so that every part of the model matters.
Gpt lively(const GptConfig& config, Dtype dtype) {
  Rng rng(1);
  Gpt model(config, rng);
  for (TransformerBlock& block : model.blocks) block.initialise(0.4, 0.3, rng);
  return to(model, dtype);
}

TEST_CASE("Gpt: the default sizes are GPT-2's", "[layers]") {
  Rng rng(1);
  CHECK(parameter_count(Gpt(GptConfig{}, rng)) == 124'439'808);
}

TEST_CASE("Gpt: names and counts of parameters", "[layers]") {
  Rng rng(1);
  GptConfig config = tiny;
  std::vector<std::string> names;
  for (const NamedTensor& p : named_parameters(Gpt(config, rng))) names.push_back(p.name);
  CHECK(names[0] == "token_embedding.table");
  CHECK(names[1] == "position_embedding.table");
  CHECK(names[2] == "blocks.0.norm1.gain");
  CHECK(names.back() == "norm.bias");

  const std::int64_t tied = parameter_count(Gpt(config, rng));
  config.tied_output = false;
  CHECK(parameter_count(Gpt(config, rng)) == tied + V * config.d_model);
  config.tied_output = true;
  config.positions = Positions::rotary;
  CHECK(parameter_count(Gpt(config, rng)) == tied - T * config.d_model);
}

TEST_CASE("Gpt: the initial weights are GPT-2's", "[layers]") {
  Rng rng(1);
  const Gpt model({.vocabulary = 101, .context = 50, .d_model = 64, .heads = 4, .layers = 8}, rng);
  for (const auto& [name, tensor] : named_parameters(model)) {
    INFO(name);
    const double mean_square = mean(tensor * tensor).item();
    const auto ends_with = [&name = name](std::string_view end) { return name.ends_with(end); };
    if (ends_with("gain")) {
      CHECK(mean((tensor - 1.0) * (tensor - 1.0)).item() == 0);
    } else if (ends_with("Wo") || ends_with("down.W")) {
      CHECK(std::sqrt(mean_square) == Approx(0.02 / 4).epsilon(0.05));
    } else if (ends_with(".W") || ends_with("table") || ends_with("Wq") || ends_with("Wk") ||
               ends_with("Wv")) {
      CHECK(std::sqrt(mean_square) == Approx(0.02).epsilon(0.05));
    } else {
      CHECK(mean_square == 0);
    }
  }
}

TEST_CASE("Gpt: the first loss is slightly above ln V", "[layers]") {
  const Positions positions = every_scheme();
  const bool tied = GENERATE(true, false);
  const GptConfig config{.vocabulary = 211,
                         .context = 32,
                         .d_model = 48,
                         .heads = 4,
                         .layers = 3,
                         .positions = positions,
                         .tied_output = tied};
  Rng rng(1);
  const Gpt model(config, rng);
  const Tensor logits = model(draw_ids({8, 32}, 211));
  const double loss = cross_entropy(logits, draw_ids({8, 32}, 211, 6)).loss.item();
  CHECK(std::abs(loss - std::log(211.0)) <= 0.05 + 0.02 * 0.02 * 48 / 2);
}

TEST_CASE("Gpt: no position sees later ones", "[layers]") {
  const Gpt model = lively(with(every_scheme()), f64);
  const Indices ids = draw_ids({2, T}, V);
  check_close(model(columns(ids, 0, 4)), slice(model(ids), 1, 0, 4), 1e-13);
}

TEST_CASE("Gpt: decoding gives the logits of the whole sequence at every position", "[layers]") {
  GptConfig config = with(every_scheme());
  const bool modern = GENERATE(false, true);
  if (modern) {
    config.tied_output = false;
    config.block = {.attention = {.key_value_heads = 1, .bias = false, .window = 3, .qk_norm = true},
                    .norm = NormKind::rms,
                    .mlp = MlpKind::swiglu};
  }
  const Dtype dtype = GENERATE(f32, f64);
  const Gpt model = lively(config, dtype);
  const Indices ids = draw_ids({2, T}, V);
  const Tensor whole = model(ids);
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>(T, 1), {4, 1, 2}}) {
    Gpt::Cache cache = model.cache(2);
    std::vector<Tensor> steps;
    for (const std::int64_t size : sizes) {
      steps.push_back(model.logits(columns(ids, cache.length, cache.length + size), cache));
    }
    CHECK(cache.length == T);
    CHECK_FALSE(steps[0].requires_grad());
    check_close(concat(steps, 1), whole.detach(), dtype == f32 ? 1e-5 : 1e-12);
  }
}

// The options of every block that change the logits, one at a time.
TEST_CASE("Gpt: every option of a block reaches the model", "[layers]") {
  GptConfig config = with(Positions::rotary);
  const auto logits = [&] { return lively(config, f64)(draw_ids({2, T}, V)).to_vector(); };
  const std::vector<double> before = logits();
  TransformerBlockOptions& block = config.block;
  SECTION("softcap") { block.attention.softcap = 0.5; }
  SECTION("sinks") { block.attention.sinks = true; }
  SECTION("window") { block.attention.window = 2; }
  SECTION("grouped heads") { block.attention.key_value_heads = 1; }
  SECTION("norms of queries and keys") { block.attention.qk_norm = true; }
  SECTION("rotary base") { block.attention.rotary = RotaryOptions{.base = 50}; }
  SECTION("rotary scaling") {
    block.attention.rotary = RotaryOptions{.scaling = RotaryScaling::linear, .factor = 3};
  }
  SECTION("kind of norm") { block.norm = NormKind::rms; }
  SECTION("place of the norms") { block.norm_place = NormPlace::post; }
  SECTION("kind of MLP") { block.mlp = GENERATE(MlpKind::relu, MlpKind::geglu, MlpKind::none); }
  SECTION("size of the MLP") { block.d_hidden = 5; }
  CHECK(logits() != before);
}

TEST_CASE("Gpt: with norms after each addition there is none at the end", "[layers]") {
  GptConfig config = tiny;
  config.block.norm_place = NormPlace::post;
  Rng rng(1);
  CHECK_FALSE(Gpt(config, rng).norm.has_value());
}

TEST_CASE("Gpt: positions in attention that are not the model's", "[layers]") {
  GptConfig config = with(GENERATE(Positions::none, Positions::learned, Positions::sine_cosine));
  Rng rng(1);
  SECTION("rotary") { config.block.attention.rotary.emplace(); }
  SECTION("ALiBi") { config.block.attention.alibi = true; }
  SECTION("relative") { config.block.attention.relative_bias.emplace(); }
  CHECK_THROWS_WITH(Gpt(config, rng), ContainsSubstring("[Gpt] block.attention.") &&
                                          ContainsSubstring("set `positions` to the same scheme"));
}

TEST_CASE("Gpt: a full cache, and a cache of another model", "[layers]") {
  Rng rng(1);
  const Gpt model(with(Positions::rotary), rng);
  Gpt::Cache cache = model.cache(2, 3);
  model.logits({{1, 2}, {3, 4}}, cache);
  CHECK_THROWS_WITH(model.logits({{5, 6}, {7, 8}}, cache),
                    ContainsSubstring("2 of 3 positions are taken, and there is no room for 2 more"));
  CHECK(cache.length == 2);
  CHECK_NOTHROW(model.logits(draw_ids({2, 1}, V), cache));
  cache.blocks.pop_back();
  CHECK_THROWS_WITH(model.logits(draw_ids({2, 1}, V), cache), ContainsSubstring("the cache is for 2 blocks"));
}

TEST_CASE("Gpt: a pass that fails half-way leaves the cache unchanged", "[layers]") {
  const Gpt model = lively(tiny, f64);
  const Indices ids = draw_ids({1, T}, V);
  Gpt::Cache cache = model.cache(1);
  model.logits(columns(ids, 0, 4), cache);
  {
    Hooks hooks(model);
    hooks.replace("blocks.1.output", [](const Tapped&) { return Tensor(); });
    CHECK_THROWS_AS(model.logits(columns(ids, 4, 5), cache), ShapeError);
  }
  const Tensor rest = model.logits(columns(ids, 4, T), cache);
  check_close(rest, slice(model(ids), 1, 4, T).detach(), 1e-13);
}

TEST_CASE("Gpt: a shorter cache continues from an earlier position", "[layers]") {
  const Gpt model = lively(tiny, f64);
  const Indices ids = draw_ids({1, T}, V);
  Gpt::Cache cache = model.cache(1);
  model.logits(ids, cache);
  cache.length = 3;
  check_close(model.logits(columns(ids, 3, T), cache), slice(model(ids), 1, 3, T).detach(), 1e-13);
}

TEST_CASE("Gpt: hooks read and replace values while generating", "[layers]") {
  const Gpt model = lively(tiny, f64);
  const Indices ids = draw_ids({1, T}, V);
  Hooks hooks(model);
  hooks.record("blocks.*.attention.weights").replace("blocks.1.mlp.hidden", [](const Tapped& t) {
    return t.value * 0.5;
  });
  const Tensor whole = model(ids).detach();
  const Tensor map = hooks["blocks.2.attention.weights"];
  hooks.clear();
  Gpt::Cache cache = model.cache(1);
  for (std::int64_t t = 0; t < T; ++t) {
    check_close(model.logits(columns(ids, t, t + 1), cache), slice(whole, 1, t, t + 1), 1e-12);
  }
  REQUIRE(hooks.records().size() == 3 * T);
  check_close(hooks["blocks.2.attention.weights"], slice(map, 2, T - 1, T), 1e-12);
  CHECK(hooks.records().back().call == T);
}

TEST_CASE("Gpt: recomputed blocks give the same bits for less memory", "[layers]") {
  const GptConfig config{.vocabulary = V,
                         .context = 64,
                         .d_model = 16,
                         .heads = 2,
                         .layers = 4,
                         .block = {.attention = {.dropout = 0.1}, .dropout = 0.1}};
  Gpt model = lively(config, f32);
  const Indices ids = draw_ids({2, 64}, V);
  std::vector<std::vector<double>> gradients[2];
  std::int64_t kept[2];
  for (const bool recomputed : {false, true}) {
    model.config.recompute = recomputed;
    const TrainMode training(7);
    const std::int64_t before = memory().live_bytes;
    const Tensor loss = cross_entropy(model(ids), ids).loss;
    kept[recomputed] = memory().live_bytes - before;
    std::vector<Tensor> parameters;
    for (const NamedTensor& p : named_parameters(model)) parameters.push_back(p.tensor);
    for (const Tensor& g : grad({loss}, parameters)) gradients[recomputed].push_back(g.to_vector());
  }
  CHECK(gradients[0] == gradients[1]);
  CHECK(kept[1] < kept[0] / 3);
}

TEST_CASE("Gpt: the state of one model loads into another", "[layers]") {
  Rng rng(1);
  const Gpt one(tiny, rng);
  Gpt two(tiny, rng);
  CHECK(load(two, state(one)).complete());
  const Indices ids = draw_ids({2, T}, V);
  check_close(one(ids), two(ids), 0);
}

TEST_CASE("Gpt: an empty batch and empty sequences", "[layers]") {
  Rng rng(1);
  const Gpt model(with(every_scheme()), rng);
  CHECK(model(draw_ids({0, T}, V)).shape() == Shape{0, T, V});
  CHECK(model(draw_ids({2, 0}, V)).shape() == Shape{2, 0, V});
}

TEST_CASE("Gpt: wrong sizes and ids", "[layers]") {
  Rng rng(1);
  GptConfig config = tiny;
  config.layers = 0;
  CHECK_THROWS_WITH(Gpt(config, rng), ContainsSubstring("[Gpt]"));
  config = tiny;
  config.heads = 3;
  CHECK_THROWS_AS(Gpt(config, rng), ValueError);
  const Gpt model(tiny, rng);
  CHECK_THROWS_WITH(model(Indices{1, 2}), ContainsSubstring("[Gpt] expects ids (B, T), and got (2,)"));
  CHECK_THROWS_AS(model(Indices{{1, V}}), IndexError);
  CHECK_THROWS_AS(model(draw_ids({1, T + 1}, V)), ShapeError);
}

}  // namespace
}  // namespace fovea
