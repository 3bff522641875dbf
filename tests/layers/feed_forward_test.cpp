#include "fovea/layers/feed_forward.h"

#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("activations: layers and enum values call the ops", "[layers]") {
  Rng rng(1);
  const Tensor x = randn({3, 5}, rng);
  CHECK(Gelu{}(x).to_vector() == gelu(x).to_vector());
  CHECK(Gelu{.tanh = true}(x).to_vector() == gelu(x, {.tanh = true}).to_vector());
  CHECK(Silu{}(x).to_vector() == silu(x).to_vector());
  CHECK(Relu{}(x).to_vector() == relu(x).to_vector());
  CHECK(activate(Activation::gelu, x).to_vector() == gelu(x).to_vector());
  CHECK(activate(Activation::gelu_tanh, x).to_vector() == gelu(x, {.tanh = true}).to_vector());
  CHECK(activate(Activation::silu, x).to_vector() == silu(x).to_vector());
  CHECK(activate(Activation::relu, x).to_vector() == relu(x).to_vector());
  CHECK(parameter_count(Gelu{}) == 0);
  CHECK(gradcheck(Gelu{}, x, {.order = 2}).passed());
  CHECK(gradcheck(Gelu{.tanh = true}, x, {.order = 2}).passed());
  CHECK(gradcheck(Silu{}, x, {.order = 2}).passed());
  CHECK(gradcheck(Relu{}, x).passed());
}

TEST_CASE("FeedForward: two linear layers with an activation between them", "[layers]") {
  Rng rng(1);
  FeedForward layer(3, 11, rng, {.activation = Activation::relu});
  CHECK(parameter_count(layer) == 3 * 11 + 11 + 11 * 3 + 3);
  CHECK(layer.up.W.shape() == Shape{3, 11});
  const Tensor x = randn({2, 5, 3}, rng);
  CHECK(layer(x).to_vector() == layer.down(relu(layer.up(x))).to_vector());
  layer = FeedForward(3, 11, rng, {.activation = Activation::silu, .bias = false});
  CHECK(parameter_count(layer) == 2 * 3 * 11);
  CHECK(layer(x).to_vector() == matmul(silu(matmul(x, layer.up.W)), layer.down.W).to_vector());
}

TEST_CASE("GatedFeedForward: the formulas of SwiGLU and GEGLU", "[layers]") {
  const bool geglu = GENERATE(false, true);
  Rng rng(1);
  const GatedFeedForward layer =
      to(GatedFeedForward(1, 2, rng, {.activation = geglu ? Activation::gelu : Activation::silu}), f64);
  const double x = 1.5;
  double y = 0;
  for (const std::int64_t f : {0, 1}) {
    const double gate = x * layer.W1.at({0, f});
    const double share = geglu ? 0.5 * std::erfc(-gate / std::sqrt(2.0)) : 1 / (1 + std::exp(-gate));
    y += gate * share * x * layer.W3.at({0, f}) * layer.W2.at({f, 0});
  }
  CHECK(layer(tensor({x}, f64)).item() == Approx(y).epsilon(1e-12));
  CHECK(parameter_count(GatedFeedForward(3, 11, rng)) == 3 * 3 * 11);
}

TEST_CASE("FeedForward and GatedFeedForward: gradients", "[layers]") {
  Rng rng(1);
  const Tensor x = randn({2, 5, 3}, rng);
  for (const GradcheckReport& report :
       {gradcheck(FeedForward(3, 7, rng), x, {.order = 2}),
        gradcheck(FeedForward(3, 7, rng, {.activation = Activation::gelu_tanh, .bias = false}), x),
        gradcheck(GatedFeedForward(3, 7, rng), x, {.order = 2})}) {
    INFO(to_string(report));
    CHECK(report.passed());
  }
}

TEST_CASE("FeedForward and GatedFeedForward: wrong sizes", "[layers]") {
  Rng rng(1);
  CHECK_THROWS_AS(FeedForward(0, 3, rng), ValueError);
  CHECK_THROWS_AS(FeedForward(3, 0, rng), ValueError);
  CHECK_THROWS_AS(GatedFeedForward(3, 0, rng), ValueError);
  CHECK_THROWS_AS(FeedForward(3, 7, rng)(zeros({2, 5})), ShapeError);
  CHECK_THROWS_AS(GatedFeedForward(3, 7, rng)(zeros({2, 5})), ShapeError);
}

}  // namespace
}  // namespace fovea
