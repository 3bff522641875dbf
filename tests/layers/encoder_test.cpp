#include "fovea/layers/encoder.h"

#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"
#include "tests/support/close.h"

namespace fovea {
namespace {

constexpr std::int64_t V = 11, C = 6;
const EncoderConfig tiny{.vocabulary = V, .context = 7, .d_model = C, .heads = 3, .layers = 2};

Encoder lively(const EncoderConfig& config) {
  Rng rng(1);
  Encoder model(config, rng);
  for (TransformerBlock& block : model.blocks) block.initialise(0.5, 0.4, rng);
  return to(model, f64);
}

EncoderConfig with(Positions positions, NormPlace place = NormPlace::pre) {
  EncoderConfig config = tiny;
  config.positions = positions;
  config.block.norm_place = place;
  return config;
}

TEST_CASE("Encoder: every position sees every other", "[layers]") {
  const Positions positions = GENERATE(Positions::learned, Positions::sine_cosine, Positions::rotary,
                                       Positions::alibi, Positions::relative);
  const Encoder model = lively(with(positions));
  const Tensor y = model({{1, 2, 3, 4, 5}}), z = model({{1, 2, 3, 4, 6}});
  REQUIRE(y.shape() == Shape{1, 5, C});
  CHECK(y.at({0, 0, 0}) != z.at({0, 0, 0}));
  // The output depends on the order of the other tokens.
  CHECK(std::abs(y.at({0, 4, 0}) - model({{2, 1, 3, 4, 5}}).at({0, 4, 0})) > 1e-6);
}

TEST_CASE("Encoder: padding has no influence", "[layers]") {
  const NormPlace place = GENERATE(NormPlace::pre, NormPlace::post);
  const Encoder model = lively(with(Positions::learned, place));
  CHECK(model.norm.has_value() == (place == NormPlace::pre));
  const Tensor y = model({{1, 2, 3, 4, 5}, {6, 7, 8, 0, 0}}, Mask::lengths({5, 3}));
  const Tensor other = model({{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}, Mask::lengths({5, 3}));
  check_close(slice(select(y, 0, 1), 0, 0, 3), slice(select(other, 0, 1), 0, 0, 3), 0);
  check_close(slice(select(y, 0, 1), 0, 0, 3), select(model({{6, 7, 8}}), 0, 0), 1e-13);
  const Bool words({2, 1, 1, 5}, [](std::uint8_t* out) {
    for (int i = 0; i < 10; ++i) out[i] = i < 8;
  });
  check_close(model({{1, 2, 3, 4, 5}, {6, 7, 8, 0, 0}}, Mask::keep(words)), y, 1e-13);
}

TEST_CASE("Encoder: padding alone and an empty batch give no NaN", "[layers]") {
  EncoderConfig config = tiny;
  config.padding_id = 0;
  const Encoder model = lively(config);
  const Tensor y = model({{1, 2, 3}, {0, 0, 0}}, Mask::lengths({3, 0}));
  backward(y, {.gradient = ones(y.shape(), f64)});
  CHECK(all(is_finite(y)));
  for (const NamedTensor& p : named_parameters(model)) CHECK(all(is_finite(p.tensor.grad())));
  for (const double g : select(model.token_embedding.table.grad(), 0, 0).to_vector()) CHECK(g == 0);
  CHECK(model(Indices({0, 5}, [](std::int64_t*) {})).shape() == Shape{0, 5, C});
}

// gradcheck calls a layer with one argument, so this one makes the padding mask itself.
struct Padded {
  Encoder encoder;
  Tensor operator()(const Indices& ids) const { return encoder(ids, Mask::lengths({3, 2})); }
  static void visit(const Padded& self, Visitor& v) { v("encoder", self.encoder); }
};

TEST_CASE("Encoder: gradients", "[layers]") {
  const NormPlace place = GENERATE(NormPlace::pre, NormPlace::post);
  EncoderConfig config = with(Positions::learned, place);
  config.vocabulary = 5;
  config.context = 3;
  config.block.d_hidden = 4;
  config.heads = 2;
  config.layers = 1;
  const GradcheckReport report = gradcheck(Padded{lively(config)}, Indices{{2, 0, 4}, {1, 3, 0}},
                                           {.order = 2, .expect_zero = {"encoder.blocks.0.attention.bk"}});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("Encoder: wrong sizes and ids", "[layers]") {
  Rng rng(1);
  EncoderConfig config = tiny;
  config.layers = 0;
  CHECK_THROWS_WITH(Encoder(config, rng), ContainsSubstring("[Encoder]"));
  config = tiny;
  config.padding_id = V;
  CHECK_THROWS_AS(Encoder(config, rng), IndexError);
  const Encoder model(tiny, rng);
  CHECK_THROWS_WITH(model(Indices{1, 2}), ContainsSubstring("[Encoder] expects ids (B, T)"));
  CHECK_THROWS_AS(model(Indices{{1, V}}), IndexError);
}

}  // namespace
}  // namespace fovea
