#include "fovea/layers/sequential.h"

#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "fovea/layers/activations.h"
#include "fovea/layers/embedding.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/state.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("Sequential: layers run in order and are named by index", "[layers]") {
  Rng rng(1);
  const Sequential stack(Linear(3, 7, rng), Gelu{}, Linear(7, 5, rng, {.bias = false}));
  std::vector<std::string> names;
  for (const NamedTensor& parameter : named_parameters(stack)) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"0.W", "0.b", "2.W"});
  const Tensor x = randn({2, 3}, rng);
  const auto& [first, activation, last] = stack.layers;
  CHECK(stack(x).to_vector() == last(gelu(first(x))).to_vector());
  const GradcheckReport report = gradcheck(stack, x, {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("Sequential: takes ids, holds a single layer, nests", "[layers]") {
  Rng rng(1);
  const Sequential stack(Embedding(11, 3, rng), Sequential(Linear(3, 5, rng), Relu{}));
  CHECK(stack(Indices{{2, 7}, {1, 10}}).shape() == Shape{2, 2, 5});
  CHECK(named_parameters(stack)[1].name == "1.0.W");
  CHECK(gradcheck(Sequential(Embedding(11, 3, rng)), Indices{2, 7}).passed());
}

TEST_CASE("Sequential: a clone has tensors of its own, and loads a state", "[layers]") {
  Rng rng(1);
  const Sequential stack(Linear(3, 5, rng), Silu{});
  auto copy = clone(stack);
  const Tensor x = randn({2, 3}, rng);
  load(copy, state(Sequential(Linear(3, 5, rng), Silu{})));
  CHECK(copy(x).to_vector() != stack(x).to_vector());
  load(copy, state(stack));
  CHECK(copy(x).to_vector() == stack(x).to_vector());
}

}  // namespace
}  // namespace fovea
