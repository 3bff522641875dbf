#include "fovea/layers/multi_head_attention.h"

#include <cmath>

#include "autograd/graph/kernel_runs.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "fovea/layers/recompute.h"
#include "fovea/layers/tap.h"
#include "tests/support/catch.h"
#include "tests/support/close.h"

namespace fovea {
namespace {

using Options = MultiHeadAttentionOptions;

constexpr std::int64_t B = 2, T = 7, C = 6, H = 3, D = 2;

// Initial biases and sinks are 0, which would hide mistakes, so these are random.
MultiHeadAttention random_layer(std::int64_t d_model, std::int64_t heads, const Options& options,
                                Dtype dtype = f64) {
  Rng rng(1);
  MultiHeadAttention layer(d_model, heads, rng, options);
  for (Tensor* b : {&layer.bq, &layer.bk, &layer.bv, &layer.bo, &layer.sinks}) {
    if (b->defined()) *b = parameter(0.5 * randn(b->shape(), rng));
  }
  return to(layer, dtype);
}

bool all_finite(const Tensor& x) { return all(is_finite(x)); }

// The formula written with slices of the weights: the sum over heads of each output times its rows of Wo.
Tensor sum_over_heads(const MultiHeadAttention& layer, const Tensor& x, const Tensor& context,
                      const Mask& mask) {
  Tensor y = layer.bo;
  for (std::int64_t h = 0; h < layer.heads; ++h) {
    const std::int64_t d = layer.head_size, g = h / (layer.heads / layer.key_value_heads);
    const auto head = [&](const Tensor& in, const Tensor& W, const Tensor& b, std::int64_t at) {
      const Tensor part = linear(in, slice(W, 1, at * d, (at + 1) * d), slice(b, 0, at * d, (at + 1) * d));
      return reshape(part, {in.size(0), 1, in.size(1), d});
    };
    const Tensor of_head =
        attention_with_weights(head(x, layer.Wq, layer.bq, h), head(context, layer.Wk, layer.bk, g),
                               head(context, layer.Wv, layer.bv, g), {.mask = mask})
            .output;
    y = y + matmul(select(of_head, 1, 0), slice(layer.Wo, 0, h * d, (h + 1) * d));
  }
  return y;
}

TEST_CASE("MultiHeadAttention: the output is the sum over heads of output times rows of Wo", "[layers]") {
  const std::int64_t key_value_heads = GENERATE(4, 2, 1);
  const MultiHeadAttention layer = random_layer(5, 4, {.key_value_heads = key_value_heads, .head_size = 3});
  Rng rng(2);
  const Tensor x = randn({B, T, 5}, rng, f64), context = randn({B, 11, 5}, rng, f64);
  check_close(layer(x), sum_over_heads(layer, x, x, Mask::causal()), 1e-13);
  check_close(layer(x, context), sum_over_heads(layer, x, context, {}), 1e-13);
  const Mask mask = Mask::lengths({4, 9});
  check_close(layer(x, context, mask), sum_over_heads(layer, x, context, mask), 1e-13);
}

TEST_CASE("MultiHeadAttention: shapes and counts of parameters", "[layers]") {
  Rng rng(1);
  CHECK(parameter_count(MultiHeadAttention(C, H, rng)) == 4 * (C * C + C));
  CHECK(parameter_count(MultiHeadAttention(C, H, rng, {.bias = false})) == 4 * C * C);
  const MultiHeadAttention layer(5, 4, rng,
                                 {.key_value_heads = 2,
                                  .head_size = 6,
                                  .rotary = RotaryOptions{},
                                  .relative_bias = RelativeBuckets{},
                                  .qk_norm = true,
                                  .sinks = true});
  CHECK(layer.Wq.shape() == Shape{5, 24});
  CHECK(layer.Wk.shape() == Shape{5, 12});
  CHECK(layer.Wo.shape() == Shape{24, 5});
  std::vector<std::string> names;
  for (const NamedTensor& p : named_parameters(layer)) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"Wq", "Wk", "Wv", "Wo", "bq", "bk", "bv", "bo", "sinks",
                                          "q_norm.gain", "k_norm.gain", "relative_bias.table"});
}

TEST_CASE("MultiHeadAttention: options reach the scores", "[layers]") {
  Rng rng(2);
  const Tensor x = randn({B, T, C}, rng, f64);
  const auto scores_and_weights = [&](const MultiHeadAttention& layer) {
    Hooks hooks(layer);
    hooks.record("*");
    layer(x, Mask());
    return std::pair(hooks["scores"], hooks["weights"]);
  };
  const auto [plain, plain_weights] = scores_and_weights(random_layer(C, H, {}));
  REQUIRE(plain.shape() == Shape{B, H, T, T});

  const auto [biased, biased_weights] = scores_and_weights(random_layer(C, H, {.alibi = true}));
  CHECK(biased.at({1, 2, 5, 1}) == Approx(plain.at({1, 2, 5, 1}) - 4 * alibi_slopes(H, f64).at({2})));

  const auto [capped, capped_weights] = scores_and_weights(random_layer(C, H, {.softcap = 0.3}));
  CHECK(capped.at({1, 2, 5, 1}) == Approx(0.3 * std::tanh(plain.at({1, 2, 5, 1}) / 0.3)));

  const auto [windowed, windowed_weights] = scores_and_weights(random_layer(C, H, {.window = 3}));
  CHECK(windowed_weights.at({1, 2, 5, 2}) == 0);
  CHECK(windowed_weights.at({1, 2, 5, 3}) > 0);

  const MultiHeadAttention sinking = random_layer(C, H, {.sinks = true});
  const auto [sunk, sunk_weights] = scores_and_weights(sinking);
  double total = std::exp(sinking.sinks.at({2}));
  for (std::int64_t j = 0; j < T; ++j) total += std::exp(sunk.at({1, 2, 5, j}));
  CHECK(sunk_weights.at({1, 2, 5, 4}) == Approx(std::exp(sunk.at({1, 2, 5, 4})) / total));
}

TEST_CASE("MultiHeadAttention: rotary scores depend on distances only", "[layers]") {
  const MultiHeadAttention layer = random_layer(C, H, {.rotary = RotaryOptions{.base = 50}});
  Rng rng(2);
  const Tensor x = randn({B, 3, C}, rng, f64);
  const Tensor before = randn({B, 4, C}, rng, f64);
  const auto scores = [&](const Tensor& sequence) {
    Hooks hooks(layer);
    hooks.record("scores");
    layer(sequence, Mask());
    const std::int64_t end = sequence.size(1);
    return slice(slice(hooks["scores"], 2, end - 3, end), 3, end - 3, end);
  };
  check_close(scores(concat({before, x}, 1)), scores(x), 1e-13);
}

// --- A cache ---

struct Scheme {
  std::string name;
  Options options;
};
std::vector<Scheme> schemes() {
  return {{"none", {}},
          {"rotary halves", {.rotary = RotaryOptions{}}},
          {"rotary adjacent", {.rotary = RotaryOptions{.layout = RotaryLayout::adjacent, .base = 100}}},
          {"alibi", {.alibi = true}},
          {"relative", {.relative_bias = RelativeBuckets{.buckets = 5, .max_distance = 4}}},
          {"window", {.window = 3}},
          {"all else",
           {.key_value_heads = 1,
            .head_size = 4,
            .bias = false,
            .rotary = RotaryOptions{},
            .window = 4,
            .qk_norm = true,
            .softcap = 2,
            .sinks = true}}};
}

TEST_CASE("MultiHeadAttention: with a cache every position equals that of the whole sequence", "[layers]") {
  const NoGrad no_grad;
  const Dtype dtype = GENERATE(f32, f64);
  for (const auto& [name, options] : schemes()) {
    INFO(name);
    const MultiHeadAttention layer = random_layer(C, H, options, dtype);
    Rng rng(2);
    const Tensor x = randn({B, T, C}, rng, dtype);
    const Tensor whole = layer(x);
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>(T, 1), {3, 1, 1, 2}, {T}, {2, 0, 5}}) {
      KvCache cache = layer.cache(B, T);
      std::vector<Tensor> steps;
      for (const std::int64_t size : sizes) {
        const std::int64_t at = cache.length();
        steps.push_back(layer(slice(x, 1, at, at + size), cache));
      }
      CHECK(cache.length() == T);
      check_close(concat(steps, 1), whole, dtype == f32 ? 1e-5 : 1e-12);
    }
  }
}

TEST_CASE("KvCache: errors leave the cache unchanged", "[layers]") {
  const MultiHeadAttention layer = random_layer(C, H, {}, f32);
  KvCache cache = layer.cache(B, 3);
  CHECK_THROWS_WITH(layer(zeros({B, 2, C}), cache), ContainsSubstring("generate under NoGrad"));
  const NoGrad no_grad;
  layer(zeros({B, 2, C}), cache);
  CHECK_THROWS_WITH(layer(zeros({B, 2, C}), cache),
                    ContainsSubstring("2 of 3 positions are taken, and there is no room for 2 more"));
  CHECK_THROWS_AS(layer(zeros({B + 1, 1, C}), cache), ShapeError);
  CHECK_THROWS_AS(layer(zeros({B, 1, C}), cache, Mask::keep(Bool{true, false})), ShapeError);
  CHECK_THROWS_AS(to(layer, f64)(zeros({B, 1, C}, f64), cache), DtypeError);
  CHECK(cache.length() == 2);
  CHECK_THROWS_AS(cache.append(zeros({B, H, 1, D}), zeros({B, H, 0, D})), ShapeError);
  CHECK_THROWS_AS(cache.truncate(3), ValueError);
  CHECK_THROWS_AS(layer.cache(B, -1), ValueError);
  CHECK(cache.length() == 2);
}

TEST_CASE("KvCache: more room changes nothing of what it holds", "[layers]") {
  const NoGrad no_grad;
  const MultiHeadAttention layer = random_layer(C, H, {});
  Rng rng(2);
  const Tensor x = randn({B, 5, C}, rng, f64);
  KvCache cache = layer.cache(B, 0);
  cache.reserve(3);
  CHECK(cache.capacity() == 3);
  layer(slice(x, 1, 0, 3), cache);
  cache.reserve(2);
  CHECK(cache.capacity() == 3);
  cache.reserve(7);
  CHECK(cache.capacity() == 7);
  CHECK(cache.length() == 3);
  check_close(layer(slice(x, 1, 3, 5), cache), slice(layer(x), 1, 3, 5), 1e-12);
}

TEST_CASE("KvCache: a copy is independent, and forgotten positions have no influence", "[layers]") {
  const NoGrad no_grad;
  const MultiHeadAttention layer = random_layer(C, H, {});
  Rng rng(2);
  const Tensor prompt = randn({B, 3, C}, rng, f64);
  const Tensor a = randn({B, 2, C}, rng, f64), b = randn({B, 2, C}, rng, f64);
  KvCache first = layer.cache(B, 5);
  layer(prompt, first);
  KvCache second = first;
  const Tensor with_a = layer(a, first), with_b = layer(b, second);
  check_close(with_a, slice(layer(concat({prompt, a}, 1)), 1, 3, 5), 1e-13);
  check_close(with_b, slice(layer(concat({prompt, b}, 1)), 1, 3, 5), 1e-13);
  first.truncate(3);
  check_close(layer(b, first), with_b, 0);
  first = second;
  CHECK(first.length() == 5);
}

TEST_CASE("MultiHeadAttention: taps while generating", "[layers]") {
  const NoGrad no_grad;
  const MultiHeadAttention layer = random_layer(C, H, {});
  Rng rng(2);
  const Tensor x = randn({B, T, C}, rng, f64);
  Hooks hooks(layer);
  hooks.record("weights");
  layer(x);
  const Tensor map = hooks["weights"];
  KvCache cache = layer.cache(B, T);
  for (std::int64_t t = 0; t < T; ++t) {
    layer(slice(x, 1, t, t + 1), cache);
    check_close(hooks["weights"], slice(slice(map, 2, t, t + 1), 3, 0, t + 1), 1e-13);
  }
}

// --- Taps ---

TEST_CASE("MultiHeadAttention: hooks on scores or weights take the composed path", "[layers]") {
  const MultiHeadAttention layer = random_layer(C, H, {});
  Rng rng(2);
  const Tensor x = randn({B, T, C}, rng, f64);
  const Tensor fused = layer(x);
  const auto fused_runs = [&](std::string_view path) {
    Hooks hooks(layer);
    hooks.record(path);
    const std::int64_t before = runs_of("attention");
    check_close(layer(x), fused, 1e-13);
    return runs_of("attention") - before;
  };
  CHECK(fused_runs("heads") == 1);
  CHECK(fused_runs("weights") == 0);
  CHECK(fused_runs("scores") == 0);
}

TEST_CASE("MultiHeadAttention: maps are taken before dropout", "[layers]") {
  const MultiHeadAttention layer = random_layer(C, H, {.dropout = 0.5});
  const TrainMode training(7);
  Rng rng(2);
  Hooks hooks(layer);
  hooks.record("weights");
  layer(randn({B, T, C}, rng, f64));
  for (const double total : sum(hooks["weights"], -1).to_vector()) CHECK(total == Approx(1));
}

TEST_CASE("MultiHeadAttention: replaced scores, weights and heads", "[layers]") {
  const MultiHeadAttention layer = random_layer(C, H, {});
  Rng rng(2);
  const Tensor x = randn({B, T, C}, rng, f64);
  const auto with = [&](std::string_view path, const Hooks::Replacement& replacement) {
    Hooks hooks(layer);
    hooks.replace(path, replacement);
    return layer(x, Mask());
  };
  const auto zero = [](const Tapped& t) { return zeros(t.value.shape(), f64); };
  const auto uniform = [](const Tapped& t) { return full(t.value.shape(), 1.0 / T, f64); };
  check_close(with("scores", zero), with("weights", uniform), 1e-13);
  const Tensor mean_value = mean(linear(x, layer.Wv, layer.bv), 1, keepdims);
  check_close(with("weights", uniform), broadcast_to(linear(mean_value, layer.Wo, layer.bo), {B, T, C}),
              1e-13);
  check_close(with("heads", zero), broadcast_to(layer.bo, {B, T, C}), 0);
}

// Attention, recomputed or not.
struct Recomputed {
  MultiHeadAttention attention;
  bool recomputed;
  Tensor operator()(const Tensor& x) const { return recomputed ? recompute(attention, x) : attention(x); }
  static void visit(const Recomputed& self, Visitor& v) { v("attention", self.attention); }
};

TEST_CASE("MultiHeadAttention: with hooks, it is recomputed on the same path", "[layers]") {
  const MultiHeadAttention layer = random_layer(C, H, {.dropout = 0.3});
  std::vector<std::vector<double>> gradients;
  for (const bool recomputed : {true, false}) {
    const Recomputed model{layer, recomputed};
    Rng rng(2);
    const TrainMode training(7);
    Hooks hooks(model);
    hooks.record("attention.weights");
    const std::int64_t fused = runs_of("attention");
    const Tensor y = model(randn({B, T, C}, rng, f64));
    gradients.push_back(grad({y}, {layer.Wk}, {.gradients = {randn(y.shape(), rng, f64)}})[0].to_vector());
    CHECK(runs_of("attention") == fused);
    CHECK(hooks.records().size() == 1);
  }
  CHECK(gradients[0] == gradients[1]);
}

// --- Gradients and edges ---

void check_gradients(const Options& options, const std::vector<std::string>& expect_zero = {}) {
  Rng rng(3);
  const MultiHeadAttention layer = random_layer(C, H, options);
  const GradcheckReport report =
      gradcheck(layer, randn({1, 5, C}, rng), {.order = 2, .expect_zero = expect_zero});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("MultiHeadAttention: gradients", "[layers]") {
  // The bias of the keys adds one number to all scores of a query, which softmax ignores.
  check_gradients({}, {"bk"});
  check_gradients({.key_value_heads = 1, .rotary = RotaryOptions{}, .qk_norm = true});
  check_gradients({.key_value_heads = 1, .alibi = true, .window = 3, .softcap = 2, .sinks = true});
  check_gradients({.bias = false, .relative_bias = RelativeBuckets{.buckets = 4, .max_distance = 3}});
}

// Cross-attention as a function of the context, with the same dropout in every call.
struct Cross {
  MultiHeadAttention attention;
  Tensor x;
  Tensor operator()(const Tensor& context) const {
    const TrainMode scope(7);
    return attention(to(x, context.dtype()), context);
  }
  static void visit(const Cross& self, Visitor& v) { v("attention", self.attention); }
};

TEST_CASE("MultiHeadAttention: gradients of cross-attention with dropout", "[layers]") {
  Rng rng(3);
  const Cross layer{random_layer(C, H, {.dropout = 0.3}), randn({1, 3, C}, rng)};
  const GradcheckReport report =
      gradcheck(layer, randn({1, 5, C}, rng), {.order = 2, .expect_zero = {"attention.bk"}});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("MultiHeadAttention: hidden keys, an empty batch and more queries than keys give no NaN",
          "[layers]") {
  const bool with_hooks = GENERATE(false, true);
  for (const auto& [name, options] : schemes()) {
    INFO(name << (with_hooks ? ", composed" : ", fused"));
    const MultiHeadAttention layer = random_layer(C, H, options);
    Rng rng(2);
    const auto finite = [&](std::int64_t batch, std::int64_t queries, std::int64_t keys, const Mask& mask) {
      const Tensor x = randn({batch, queries, C}, rng, f64).set_requires_grad();
      const Tensor context = randn({batch, keys, C}, rng, f64);
      Hooks hooks(layer);
      if (with_hooks) hooks.record("*");
      const Tensor y = layer(x, context, mask);
      backward(y, {.gradient = ones(y.shape(), f64)});
      bool good = all_finite(y) && all_finite(x.grad());
      for (const NamedTensor& p : named_parameters(layer)) good = good && all_finite(p.tensor.grad());
      return good;
    };
    CHECK(finite(2, T, T, Mask::causal() & Mask::lengths({T, 0})));
    CHECK(finite(0, T, T, Mask::causal()));
    CHECK(finite(2, T, 3, Mask::causal()));
    CHECK(finite(2, 3, T, Mask::drop(Bool{true})));
  }
}

TEST_CASE("MultiHeadAttention: wrong sizes and options", "[layers]") {
  Rng rng(1);
  const auto make = [&](std::int64_t d_model, std::int64_t heads, const Options& options = {}) {
    MultiHeadAttention(d_model, heads, rng, options);
  };
  CHECK_THROWS_AS(make(0, 1), ValueError);
  CHECK_THROWS_AS(make(C, 0), ValueError);
  CHECK_THROWS_WITH(make(5, 3), ContainsSubstring("5 channels do not divide into 3 heads"));
  CHECK_THROWS_WITH(make(C, H, {.key_value_heads = 2}),
                    ContainsSubstring("3 heads can't share 2 heads of keys and values evenly"));
  CHECK_THROWS_AS(make(9, 3, {.rotary = RotaryOptions{}}), ValueError);
  CHECK_THROWS_AS(make(C, H, {.alibi = true, .relative_bias = RelativeBuckets{}}), ValueError);
  CHECK_THROWS_AS(make(C, H, {.window = 0}), ValueError);
  CHECK_THROWS_AS(make(C, H, {.softcap = -1}), ValueError);
  CHECK_THROWS_AS(make(C, H, {.dropout = 1.5}), ValueError);
  const MultiHeadAttention layer(C, H, rng);
  CHECK_THROWS_WITH(layer(zeros({B, T, 5})), ContainsSubstring("expects x (B, T, 6), and got (2, 7, 5)"));
  CHECK_THROWS_AS(layer(zeros({T, C})), ShapeError);
  CHECK_THROWS_AS(layer(zeros({B, T, C}), zeros({B, T, 5})), ShapeError);
}

}  // namespace
}  // namespace fovea
