#include "fovea/layers/transformer_block.h"

#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/tap.h"
#include "tests/support/catch.h"
#include "tests/support/close.h"

namespace fovea {
namespace {

using Options = TransformerBlockOptions;

constexpr std::int64_t B = 2, T = 5, C = 6, H = 3;

TEST_CASE("TransformerBlock: norms before or after", "[layers]") {
  Rng rng(1);
  const Tensor x = randn({B, T, C}, rng, f64);
  const TransformerBlock pre = to(TransformerBlock(C, H, rng), f64);
  const Tensor h = x + pre.attention(call(pre.norm1, x));
  check_close(pre(x), h + call(*pre.mlp, call(*pre.norm2, h)), 0);

  const TransformerBlock post = to(TransformerBlock(C, H, rng, {.norm_place = NormPlace::post}), f64);
  const Tensor g = call(post.norm1, x + post.attention(x));
  check_close(post(x), call(*post.norm2, g + call(*post.mlp, g)), 0);
}

TEST_CASE("TransformerBlock: counts of parameters", "[layers]") {
  Rng rng(1);
  const auto count = [&](const Options& options) {
    return parameter_count(TransformerBlock(C, H, rng, options));
  };
  const std::int64_t attention = 4 * (C * C + C), norms = 2 * 2 * C, mlp = 8 * C * C + 5 * C;
  CHECK(count({}) == attention + norms + mlp);
  CHECK(count({.norm = NormKind::rms}) == attention + norms / 2 + mlp);
  CHECK(count({.d_hidden = 7}) == attention + norms + 2 * 7 * C + 7 + C);
  CHECK(count({.mlp = MlpKind::swiglu}) == attention + norms + 3 * 16 * C);
  CHECK(count({.attention = {.bias = false}, .mlp_bias = false}) == 4 * C * C + norms + 8 * C * C);
  const std::vector<NamedTensor> named =
      named_parameters(TransformerBlock(C, H, rng, {.mlp = MlpKind::swiglu}));
  CHECK(named.front().name == "norm1.gain");
  CHECK(named.back().name == "mlp.W3");
  CHECK(count({.mlp = MlpKind::geglu}) == count({.mlp = MlpKind::swiglu}));
  CHECK(count({.mlp = MlpKind::none}) == attention + norms / 2);
}

TEST_CASE("TransformerBlock: each kind of MLP", "[layers]") {
  Rng rng(1);
  const Tensor x = randn({B, T, C}, rng, f64);
  const auto make = [&](MlpKind kind) { return to(TransformerBlock(C, H, rng, {.mlp = kind}), f64); };
  const auto check_activation = [&](MlpKind kind, Activation activation) {
    const TransformerBlock block = make(kind);
    CHECK(std::get<FeedForward>(*block.mlp).activation == activation);
  };
  check_activation(MlpKind::gelu, Activation::gelu);
  check_activation(MlpKind::gelu_tanh, Activation::gelu_tanh);
  check_activation(MlpKind::relu, Activation::relu);
  check_activation(MlpKind::silu, Activation::silu);
  CHECK(std::get<GatedFeedForward>(*make(MlpKind::swiglu).mlp).activation == Activation::silu);
  CHECK(std::get<GatedFeedForward>(*make(MlpKind::geglu).mlp).activation == Activation::gelu);
  const TransformerBlock attention_only = make(MlpKind::none);
  check_close(attention_only(x), x + attention_only.attention(call(attention_only.norm1, x)), 0);
}

TEST_CASE("TransformerBlock: dropout acts on what is added to x", "[layers]") {
  Rng rng(1);
  const TransformerBlock block(C, H, rng, {.dropout = 1});
  const Tensor x = randn({B, T, C}, rng);
  const TrainMode training(7);
  check_close(block(x), x, 0);
}

TEST_CASE("TransformerBlock: with a cache every position equals that of the whole sequence", "[layers]") {
  const NoGrad no_grad;
  const NormPlace place = GENERATE(NormPlace::pre, NormPlace::post);
  Rng rng(1);
  const TransformerBlock block = to(TransformerBlock(C, H, rng, {.norm_place = place}), f64);
  const Tensor x = randn({B, T, C}, rng, f64);
  KvCache cache = block.attention.cache(B, T);
  std::vector<Tensor> steps;
  for (std::int64_t t = 0; t < T; ++t) steps.push_back(block(slice(x, 1, t, t + 1), cache));
  check_close(concat(steps, 1), block(x), 1e-13);
}

TEST_CASE("TransformerBlock: taps", "[layers]") {
  Rng rng(1);
  const TransformerBlock block(C, H, rng);
  const Tensor x = randn({B, T, C}, rng);
  Hooks hooks(block);
  hooks.record("*");
  const Tensor y = block(x);
  std::vector<std::string> paths;
  for (const Tapped& tapped : hooks.records()) paths.push_back(tapped.path());
  CHECK(paths == std::vector<std::string>{"input", "attention.scores", "attention.weights", "attention.heads",
                                          "mlp.hidden", "output"});
  check_close(hooks["input"], x, 0);
  check_close(hooks["output"], y, 0);
  CHECK(hooks["mlp.hidden"].shape() == Shape{B, T, 4 * C});
}

TEST_CASE("TransformerBlock: a replaced input is also the residual", "[layers]") {
  Rng rng(1);
  const TransformerBlock block(C, H, rng);
  const Tensor x = randn({B, T, C}, rng), other = randn({B, T, C}, rng);
  const Tensor expected = block(other);
  Hooks hooks(block);
  hooks.replace("input", [&](const Tapped&) { return other; });
  check_close(block(x), expected, 0);
}

TEST_CASE("TransformerBlock: initialise redraws the weights", "[layers]") {
  Rng rng(1);
  const bool swiglu = GENERATE(false, true);
  TransformerBlock block(30, H, rng, {.mlp = swiglu ? MlpKind::swiglu : MlpKind::gelu});
  block.initialise(0.5, 0.01, rng);
  const auto deviation = [&](std::string_view name) {
    for (const auto& [found, tensor] : named_parameters(block)) {
      if (found == name) return std::sqrt(mean(tensor * tensor).item());
    }
    return -1.0;
  };
  CHECK(deviation("attention.Wk") == Approx(0.5).epsilon(0.1));
  CHECK(deviation("attention.Wo") == Approx(0.01).epsilon(0.1));
  CHECK(deviation(swiglu ? "mlp.W1" : "mlp.up.W") == Approx(0.5).epsilon(0.1));
  CHECK(deviation(swiglu ? "mlp.W2" : "mlp.down.W") == Approx(0.01).epsilon(0.1));
  if (swiglu) CHECK(deviation("mlp.W3") == Approx(0.5).epsilon(0.1));
}

TEST_CASE("TransformerBlock: hidden keys and an empty batch give no NaN", "[layers]") {
  Rng rng(1);
  const NormPlace place = GENERATE(NormPlace::pre, NormPlace::post);
  const TransformerBlock block(C, H, rng, {.norm_place = place});
  for (const std::int64_t batch : {B, std::int64_t{0}}) {
    const Tensor x = randn({batch, T, C}, rng).set_requires_grad();
    const Tensor y = block(x, Mask::drop(Bool{true}));
    backward(y, {.gradient = ones(y.shape())});
    CHECK(all(is_finite(y)));
    CHECK(all(is_finite(x.grad())));
    for (const NamedTensor& p : named_parameters(block)) CHECK(all(is_finite(p.tensor.grad())));
  }
}

TEST_CASE("TransformerBlock: wrong sizes", "[layers]") {
  Rng rng(1);
  CHECK_THROWS_AS(TransformerBlock(5, 3, rng), ValueError);
  CHECK_THROWS_AS(TransformerBlock(C, H, rng, {.d_hidden = 0}), ValueError);
  CHECK_THROWS_AS(TransformerBlock(C, H, rng, {.dropout = -0.1}), ValueError);
  CHECK_THROWS_AS(TransformerBlock(C, H, rng)(zeros({B, T, C + 1})), ShapeError);
}

}  // namespace
}  // namespace fovea
