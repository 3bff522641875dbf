#include "fovea/layers/embedding.h"

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "fovea/train/optimizers/optimizer.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("Embedding: ids pick rows of the table", "[layers]") {
  Rng rng(1);
  const Embedding layer(7, 3, rng);
  CHECK(parameter_count(layer) == 21);
  const Indices ids{{6, 0}, {2, 2}, {1, 5}, {3, 4}, {0, 6}};
  const Tensor y = layer(ids);
  REQUIRE(y.shape() == Shape{5, 2, 3});
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t c = 0; c < 3; ++c) CHECK(y.at({i, j, c}) == layer.table.at({ids[i * 2 + j], c}));
    }
  }
  const GradcheckReport report = gradcheck(layer, ids);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("Embedding: the initial table is drawn from N(0, 1)", "[layers]") {
  Rng rng(1);
  const std::vector<double> table = Embedding(101, 97, rng).table.to_vector();
  double total = 0;
  double squares = 0;
  for (const double value : table) {
    total += value;
    squares += value * value;
  }
  CHECK(total / static_cast<double>(table.size()) == Approx(0).margin(0.04));
  CHECK(squares / static_cast<double>(table.size()) == Approx(1).epsilon(0.05));
}

TEST_CASE("Embedding: the padding row stays zero under any optimizer", "[layers]") {
  Rng rng(1);
  Embedding layer(7, 3, rng, {.padding = 2});
  const Indices ids{{6, 2}, {2, 0}};
  for (std::int64_t c = 0; c < 3; ++c) CHECK(layer.table.at({2, c}) == 0);
  AdamW optimizer(named_parameters(layer), {.learning_rate = 0.1, .weight_decay = 0.5});
  for (int step = 0; step < 3; ++step) {
    const Tensor logits = layer.as_output(layer(ids) + 1);
    backward(logits, {.gradient = randn(logits.shape(), rng)});
    for (std::int64_t c = 0; c < 3; ++c) CHECK(layer.table.grad().at({2, c}) == 0);
    optimizer.step();
    optimizer.zero_grad();
  }
  for (std::int64_t c = 0; c < 3; ++c) CHECK(layer.table.at({2, c}) == 0);
  CHECK(layer.table.at({6, 0}) != 0);

  layer.table.mutable_data<float>()[2 * 3] = 5;  // as weights that were loaded may have it
  CHECK(layer(Indices{2}).to_vector() == std::vector<double>(3, 0));
  const GradcheckReport report = gradcheck(layer, ids);
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("Embedding: as the output layer", "[layers]") {
  Rng rng(1);
  const auto padding = GENERATE(std::optional<std::int64_t>(), std::optional<std::int64_t>(4));
  const Embedding layer(7, 3, rng, {.padding = padding});
  const Tensor x = randn({2, 5, 3}, rng);
  const Tensor logits = layer.as_output(x);
  REQUIRE(logits.shape() == Shape{2, 5, 7});
  double product = 0;
  for (std::int64_t c = 0; c < 3; ++c) product += x.at({1, 3, c}) * layer.table.at({6, c});
  CHECK(logits.at({1, 3, 6}) == Approx(product));
  if (padding) CHECK(logits.at({1, 3, 4}) == 0);

  const Tensor table = layer.table;
  const auto tied = [&](const Tensor& table, const Tensor& x) {
    Embedding copy = to(layer, f64);
    copy.table = table;
    return copy.as_output(copy(Indices{{1, 4}, {6, 1}}) * x);
  };
  const GradcheckReport report =
      gradcheck(tied, {{"table", table}, {"x", randn({2, 2, 3}, rng)}}, {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("Embedding: wrong sizes and ids", "[layers]") {
  Rng rng(1);
  CHECK_THROWS_AS(Embedding(0, 3, rng), ValueError);
  CHECK_THROWS_AS(Embedding(3, 0, rng), ValueError);
  CHECK_THROWS_AS(Embedding(3, 5, rng, {.padding = 3}), IndexError);
  const Embedding layer(7, 3, rng);
  CHECK_THROWS_AS(layer(Indices{2, 7}), IndexError);
  CHECK_THROWS_WITH(layer(Indices{{0, 1}, {2, -1}}),
                    ContainsSubstring("-1") && ContainsSubstring("(1, 1)") && ContainsSubstring("7"));
}

}  // namespace
}  // namespace fovea
