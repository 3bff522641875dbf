#include "fovea/layers/one_head_model.h"

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

const Indices ids{{1, 4, 2, 6, 6}, {1, 0, 3, 5, 2}, {1, 1, 1, 0, 4}};

TEST_CASE("OneHeadModel: the same as its formula in ops", "[layers]") {
  Rng rng(1);
  const OneHeadModel model = to(OneHeadModel(7, 11, rng), f64);
  const auto [logits, weights] = model.with_weights(ids);
  REQUIRE(logits.shape() == Shape{3, 5, 7});
  REQUIRE(weights.shape() == Shape{3, 5, 5});
  const Tensor x = embedding(model.embedding.table, ids) + sine_cosine_positions(5, 11, f64);
  const SelfAttention& head = model.attention;
  const Attention attended = self_attention(x, head.Wq, head.Wk, head.Wv, head.Wo, Mask::causal());
  const Tensor expected = matmul(x + attended.output, model.output.W) + model.output.b;
  CHECK(max(abs(logits - expected)).item() < 1e-12);
  CHECK(max(abs(model(ids) - expected)).item() < 1e-12);
  CHECK(max(abs(weights - attended.weights)).item() == 0);
}

TEST_CASE("OneHeadModel: later tokens have no influence on a token", "[layers]") {
  Rng rng(2);
  const OneHeadModel model(7, 11, rng);
  const Tensor before = model(Indices{{1, 4, 2, 6, 6}});
  const Tensor after = model(Indices{{1, 4, 2, 0, 5}});
  CHECK(max(abs(slice(before, 1, 0, 3) - slice(after, 1, 0, 3))).item() == 0);
  CHECK(max(abs(slice(before, 1, 3, 5) - slice(after, 1, 3, 5))).item() > 0);
}

TEST_CASE("OneHeadModel: parameters and their gradients", "[layers]") {
  Rng rng(3);
  const OneHeadModel model(7, 11, rng);
  std::vector<std::string> names;
  for (const NamedTensor& parameter : named_parameters(model)) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"embedding.table", "attention.Wq", "attention.Wk", "attention.Wv",
                                          "attention.Wo", "output.W", "output.b"});
  CHECK(parameter_count(model) == 7 * 11 + 4 * 11 * 11 + 11 * 7 + 7);
  const GradcheckReport report = gradcheck(model, ids);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("OneHeadModel: wrong sizes and ids", "[layers]") {
  Rng rng(4);
  CHECK_THROWS_AS(OneHeadModel(0, 11, rng), ValueError);
  CHECK_THROWS_AS(OneHeadModel(7, 0, rng), ValueError);
  CHECK_THROWS_AS(OneHeadModel(7, 11, rng)(Indices{{1, 7}}), IndexError);
}

}  // namespace
}  // namespace fovea
