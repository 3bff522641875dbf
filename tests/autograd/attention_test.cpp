#include <cmath>
#include <limits>
#include <vector>

#include "fovea/autograd/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/rng.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// q, k, v as leaves, and the gradients of a random function of attention.
struct Run {
  Tensor q, k, v, output, weights;
  std::vector<Tensor> gradients;

  Run(Tensor of_q, Tensor of_k, Tensor of_v, const Mask& mask, bool create_graph = false)
      : q(of_q.set_requires_grad()), k(of_k.set_requires_grad()), v(of_v.set_requires_grad()) {
    const Attention attention = attention_with_weights(q, k, v, {.mask = mask});
    output = attention.output;
    weights = attention.weights;
    Rng rng(17);
    const Tensor u = randn(output.shape(), rng, output.dtype());
    gradients = grad({output}, {q, k, v}, {.gradients = {u}, .create_graph = create_graph});
  }
};

// x with a value in place of everything at those positions of axis 2.
Tensor with_rows(const Tensor& x, std::int64_t from, double value) {
  const Tensor hidden = full({x.size(0), x.size(1), x.size(2) - from, x.size(3)}, value, x.dtype());
  return concat({slice(x, 2, 0, from), hidden}, 2);
}

}  // namespace

TEST_CASE("attention's rows sum to 1, or are 0 where nothing is seen") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(3);
  const auto draw = [&](const Shape& shape) { return randn(shape, rng, dtype); };
  const Mask mask = Mask::causal() & Mask::lengths({5, 0});
  const Run run(draw({2, 3, 4, 7}), draw({2, 3, 5, 7}), draw({2, 3, 5, 11}), mask);
  CHECK(run.output.shape() == Shape{2, 3, 4, 11});
  CHECK(run.weights.shape() == Shape{2, 3, 4, 5});
  const std::vector<double> totals = sum(run.weights, -1).to_vector();
  for (std::size_t i = 0; i < 12; ++i) CHECK(totals[i] == Approx(1));
  for (std::size_t i = 12; i < 24; ++i) CHECK(totals[i] == 0);
  // Query 0 of 4 sees keys 0 and 1 of 5.
  CHECK(run.weights.at({0, 0, 0, 1}) > 0);
  CHECK(run.weights.at({0, 0, 0, 2}) == 0);
  CHECK(select(run.output, 0, 1).to_vector() == std::vector<double>(3 * 4 * 11, 0));
}

TEST_CASE("a mask that hides everything gives zeros in value and in every gradient") {
  const Dtype dtype = GENERATE(f32, f64);
  const bool create_graph = GENERATE(false, true);
  Rng rng(5);
  const auto draw = [&](const Shape& shape) { return randn(shape, rng, dtype); };
  const Run run(draw({1, 2, 3, 5}), draw({1, 2, 7, 5}), draw({1, 2, 7, 5}), Mask::lengths({0}), create_graph);
  CHECK_FALSE(any(run.output != 0.0));
  CHECK_FALSE(any(run.weights != 0.0));
  for (const Tensor& gradient : run.gradients) CHECK_FALSE(any(gradient != 0.0));
  if (!create_graph) return;
  const std::vector<Tensor> second =
      grad({sum(run.gradients[0] + 1)}, {run.q, run.k, run.v}, {.allow_unused = true});
  for (const Tensor& gradient : second) CHECK_FALSE(any(gradient != 0.0));
}

TEST_CASE("what is hidden from every query has no influence, be it NaN or infinite") {
  const Dtype dtype = GENERATE(f32, f64);
  const double hidden = GENERATE(not_a_number, infinity, -infinity, 1e30);
  Rng rng(7);
  const auto draw = [&](const Shape& shape) { return randn(shape, rng, dtype); };
  const Tensor q = draw({1, 2, 3, 5}), k = draw({1, 2, 4, 5}), v = draw({1, 2, 4, 5});
  for (const Mask& mask : {Mask::lengths({2}), Mask::drop(Bool{false, false, true, true})}) {
    const Run clean(clone(q), with_rows(k, 2, 0), with_rows(v, 2, 0), mask);
    const Run dirty(clone(q), with_rows(k, 2, hidden), with_rows(v, 2, hidden), mask);
    CHECK(dirty.output.to_vector() == clean.output.to_vector());
    CHECK(dirty.weights.to_vector() == clean.weights.to_vector());
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(dirty.gradients[i].to_vector() == clean.gradients[i].to_vector());
    CHECK_FALSE(any(slice(dirty.gradients[1], 2, 2, 4) != 0.0));
    CHECK_FALSE(any(slice(dirty.gradients[2], 2, 2, 4) != 0.0));
  }
}

TEST_CASE("padding of one sequence does not reach another") {
  Rng rng(11);
  const auto draw = [&](const Shape& shape) { return randn(shape, rng, f64); };
  const Tensor q = draw({2, 1, 3, 5}), k = draw({2, 1, 4, 5}), v = draw({2, 1, 4, 5});
  const Tensor both = attention(q, k, v, {.mask = Mask::lengths({2, 4})});
  const auto alone = [&](std::int64_t b, std::int64_t length) {
    const auto of = [&](const Tensor& x, std::int64_t n) { return slice(slice(x, 0, b, b + 1), 2, 0, n); };
    return attention(of(q, 3), of(k, length), of(v, length));
  };
  const Tensor expected = concat({alone(0, 2), alone(1, 4)}, 0);
  for (std::size_t i = 0; i < 30; ++i) CHECK(both.to_vector()[i] == Approx(expected.to_vector()[i]));
}

TEST_CASE("the essay's self_attention, by hand") {
  // One dimension, so that all can be worked out: scores q k, weights softmax(scores), y = A v wo.
  const Tensor x = reshape(tensor({1, 2}, f64), {2, 1});
  const auto weight = [](double w) { return full({1, 1}, w, f64); };
  const Attention y = self_attention(x, weight(0.5), weight(1), weight(3), weight(2));
  const double a = 1 / (1 + std::exp(1.0));  // query 2 scores 1 and 2
  CHECK(y.weights.to_vector()[0] == 1);
  CHECK(y.weights.to_vector()[1] == 0);
  CHECK(y.weights.to_vector()[2] == Approx(a));
  CHECK(y.weights.to_vector()[3] == Approx(1 - a));
  CHECK(y.output.to_vector()[0] == Approx(6));
  CHECK(y.output.to_vector()[1] == Approx(6 * a + 12 * (1 - a)));
}
