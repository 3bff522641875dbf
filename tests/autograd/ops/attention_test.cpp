#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "autograd/graph/kernel_runs.h"
#include "autograd/ops/reference.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Attention of the leaves q, k, v, and its gradients for a random cotangent.
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

using Implementation = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const AttentionOptions&);

// The shapes of q and k (v has that of k), and options; the tensors among these are replaced by random
// leaves.
struct Problem {
  std::string name;
  Shape q, k;
  AttentionOptions options;
};

// All gradients of one implementation (of q, k, v, and of bias, relative_bias and sinks where there are any),
// and its value last.
std::vector<Tensor> results(Implementation function, const Problem& problem, Dtype dtype) {
  Rng rng(13);
  const auto leaf = [&](const Shape& shape) { return to(randn(shape, rng, f32), dtype).set_requires_grad(); };
  std::vector<Tensor> inputs{leaf(problem.q), leaf(problem.k), leaf(problem.k)};
  AttentionOptions options = problem.options;
  for (Tensor* x : {&options.bias, &options.relative_bias, &options.sinks}) {
    if (x->defined()) inputs.push_back(*x = leaf(x->shape()));
  }
  const TrainMode scope(19);
  const Tensor y = function(inputs[0], inputs[1], inputs[2], options);
  const Tensor dy = to(randn(y.shape(), rng, f32), dtype);
  std::vector<Tensor> all = grad({y}, inputs, {.gradients = {dy}});
  all.push_back(y.detach());
  return all;
}

// The largest difference, relative to the largest element.
double distance(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0) return 0;
  const Tensor expected = to(b, f64);
  const double scale = std::max(1.0, max(abs(expected)).item());
  const Tensor difference = abs(to(a, f64) - expected);
  CHECK(all(is_finite(difference)));
  return max(difference).item() / scale;
}

// Every option alone, and all of them together, on sequences of length `time`.
std::vector<Problem> problems_of_length(std::int64_t time) {
  const Shape shape{1, 2, time, 5};
  const Tensor bias = empty({2, time, time}), relative = empty({2, 2 * time - 1}), sinks = empty({2});
  const Bool pattern({time, time}, [=](std::uint8_t* out) {
    for (std::int64_t i = 0; i < time * time; ++i) out[i] = i % 7 < 3 && i / time != 2;
  });
  return {
      {"plain", shape, shape, {}},
      {"causal", shape, shape, {.mask = Mask::causal()}},
      {"window", shape, shape, {.mask = Mask::window(19)}},
      {"causal window", shape, shape, {.mask = Mask::causal() & Mask::window(70)}},
      {"lengths", {3, 2, time, 5}, {3, 2, time, 5}, {.mask = Mask::lengths({time / 2, 0, time})}},
      {"keep", shape, shape, {.mask = Mask::keep(pattern)}},
      {"bias", shape, shape, {.bias = bias}},
      {"bias of keys", {2, 2, time, 5}, {2, 2, time, 5}, {.bias = empty({2, 1, 1, time})}},
      {"bias by distance", shape, shape, {.relative_bias = relative}},
      {"scale", shape, shape, {.scale = 0.3}},
      {"dropout", shape, shape, {.dropout = 0.3}},
      {"softcap", shape, shape, {.softcap = 2}},
      {"sinks", shape, shape, {.sinks = sinks}},
      {"grouped heads", {2, 6, time, 5}, {2, 2, time, 5}, {.mask = Mask::causal()}},
      {"fewer queries", {1, 2, (time + 1) / 2, 5}, shape, {.mask = Mask::causal()}},
      {"fewer keys", shape, {1, 2, (time + 1) / 2, 5}, {.mask = Mask::causal()}},
      {"everything",
       {2, 4, time, 5},
       {2, 2, time, 5},
       {.mask = Mask::causal() & Mask::window(101) & Mask::lengths({time, time / 3}) & Mask::keep(pattern),
        .bias = empty({4, time, 1}),
        .relative_bias = empty({1, 2 * time - 1}),
        .scale = 0.5,
        .dropout = 0.2,
        .softcap = 3,
        .sinks = empty({4})}}};
}

// x with one value in every place from position `from` of axis 2 on.
Tensor with_rows(const Tensor& x, std::int64_t from, double value) {
  const Tensor hidden = full({x.size(0), x.size(1), x.size(2) - from, x.size(3)}, value, x.dtype());
  return concat({slice(x, 2, 0, from), hidden}, 2);
}

}  // namespace

TEST_CASE("attention: rows of weights sum to 1, or are 0 where the mask hides every key") {
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

TEST_CASE("attention: a mask that hides everything gives zeros in value and in every gradient") {
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

TEST_CASE("attention with weights: keys hidden from every query have no influence, even NaN and infinity") {
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

TEST_CASE("attention: padding of one sequence does not reach another") {
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

TEST_CASE("self_attention: a case worked out by hand") {
  // With C = D = 1, every number can be worked out: scores q k, weights A = softmax(scores), y = A v wo.
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

TEST_CASE("attention: the fused kernel agrees with the reference, for every option") {
  const std::int64_t time = GENERATE(1, 49, 64, 257);
  for (const Problem& problem : problems_of_length(time)) {
    INFO(problem.name << ", T = " << time);
    const std::int64_t forward = runs_of("attention"), backward = runs_of("attention_backward");
    const std::vector<Tensor> expected = results(reference::attention, problem, f64);
    CHECK(runs_of("attention") == forward);
    CHECK(runs_of("attention_backward") == backward);
    const std::vector<Tensor> wide = results(attention, problem, f64);
    const std::vector<Tensor> narrow = results(attention, problem, f32);
    CHECK(runs_of("attention") == forward + 2);
    CHECK(runs_of("attention_backward") == backward + 2);
    REQUIRE(wide.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("result " << i);
      CHECK(distance(wide[i], expected[i]) < 1e-13);
      CHECK(distance(narrow[i], expected[i]) < 24 * 0x1p-24);
    }
  }
}

TEST_CASE("attention: the same bits for any number of threads") {
  const int before = threads();
  for (const Problem& problem : problems_of_length(257)) {
    INFO(problem.name);
    set_threads(1);
    const std::vector<Tensor> expected = results(attention, problem, f32);
    for (const int n : {2, 3, 64}) {
      set_threads(n);
      const std::vector<Tensor> actual = results(attention, problem, f32);
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK_FALSE(any(actual[i] != expected[i]));
    }
  }
  set_threads(before);
}

TEST_CASE("attention: memory grows with T, not with its square") {
  const auto peak_above_inputs = [](std::int64_t time) {
    Rng rng(1);
    const auto leaf = [&](const Shape& shape) { return randn(shape, rng).set_requires_grad(); };
    const Tensor q = leaf({1, 2, time, 3}), k = leaf({1, 2, time, 3}), v = leaf({1, 2, time, 3});
    const AttentionOptions options{.mask = Mask::causal() & Mask::window(time),
                                   .relative_bias = alibi_bias(leaf({2}), time, time),
                                   .dropout = 0.1,
                                   .softcap = 5,
                                   .sinks = leaf({2})};
    const TrainMode scope(1);
    const std::int64_t before = memory().live_bytes;
    reset_peak_memory();
    const Tensor y = attention(q, k, v, options);
    grad({y}, {q, k, v, options.relative_bias, options.sinks}, {.gradients = {q.detach()}});
    return memory().peak_bytes - before;
  };
  const std::int64_t small = peak_above_inputs(256), large = peak_above_inputs(1024);
  CHECK(large < 5 * small);
  CHECK(large < 1024 * 1024);
}

TEST_CASE("attention: large scores do not overflow") {
  const Dtype dtype = GENERATE(f32, f64);
  for (const Implementation function : {Implementation(attention), Implementation(reference::attention)}) {
    const Tensor q = full({1, 1, 2, 1}, 100, dtype).set_requires_grad();
    const Tensor k = reshape(tensor({100, 100, -100}, dtype), {1, 1, 3, 1}).detach().set_requires_grad();
    const Tensor v = reshape(tensor({1, 5, 1000}, dtype), {1, 1, 3, 1}).detach().set_requires_grad();
    const Tensor y = function(q, k, v, {.scale = 1});
    CHECK(y.to_vector() == std::vector<double>{3, 3});
    const std::vector<Tensor> d = grad({y}, {q, k, v}, {.gradients = {ones({1, 1, 2, 1}, dtype)}});
    CHECK(d[0].to_vector() == std::vector<double>{0, 0});
    CHECK(d[1].to_vector() == std::vector<double>{-200, 200, 0});
    CHECK(d[2].to_vector() == std::vector<double>{1, 1, 0});
  }
}

TEST_CASE("attention: a query that sees no key gives zeros with sinks, biases and dropout as well") {
  const Implementation function = GENERATE(Implementation(attention), Implementation(reference::attention));
  const Dtype dtype = GENERATE(f32, f64);
  for (const Mask& mask : {Mask::lengths({0, 0}), Mask::drop(Bool{true, true, true}), Mask::causal()}) {
    // Five queries of three keys: under a causal mask, the first two see nothing.
    Problem problem{"", {2, 2, 5, 3}, {2, 2, 3, 3}, {.mask = mask, .bias = empty({5, 3}), .dropout = 0.5}};
    problem.options.relative_bias = empty({2, 7});
    problem.options.softcap = 2;
    problem.options.sinks = empty({2});
    const std::vector<Tensor> all_results = results(function, problem, dtype);
    for (const Tensor& x : all_results) CHECK(all(is_finite(x)));
    CHECK_FALSE(any(slice(all_results.back(), 2, 0, 2) != 0.0));
    CHECK_FALSE(any(slice(all_results[0], 2, 0, 2) != 0.0));
    if (mask.parts().causal) continue;
    for (const Tensor& x : all_results) CHECK_FALSE(any(x != 0.0));
  }
}

TEST_CASE("attention: a query that sees no key has no influence, even if it is NaN") {
  const Implementation function = GENERATE(Implementation(attention), Implementation(reference::attention));
  Rng rng(23);
  const auto draw = [&](const Shape& shape) { return randn(shape, rng).set_requires_grad(); };
  const Tensor rest = randn({1, 1, 2, 3}, rng);
  const Tensor q = concat({full({1, 1, 1, 3}, not_a_number), rest}, 2).set_requires_grad();
  const Tensor k = draw({1, 1, 2, 3}), v = draw({1, 1, 2, 3});
  const Tensor y = function(q, k, v, {.mask = Mask::causal()});
  for (const Tensor& d : grad({y}, {q, k, v}, {.gradients = {ones({1, 1, 3, 3})}})) CHECK(all(is_finite(d)));
}

TEST_CASE("attention: keys hidden from every query have no influence on the fused kernel, in any block") {
  const double hidden = GENERATE(not_a_number, infinity);
  Rng rng(41);
  const Bool first_200({300}, [](std::uint8_t* out) {
    for (std::int64_t j = 0; j < 300; ++j) out[j] = j < 200;
  });
  const Tensor q = randn({1, 2, 70, 5}, rng), k = randn({1, 2, 300, 5}, rng), v = randn({1, 2, 300, 5}, rng);
  for (const Mask& mask :
       {Mask::lengths({200}), Mask::keep(first_200), Mask::keep(first_200) & Mask::window(290)}) {
    const auto run = [&](double value) {
      const std::vector<Tensor> leaves{clone(q).set_requires_grad(),
                                       with_rows(k, 200, value).set_requires_grad(),
                                       with_rows(v, 200, value).set_requires_grad()};
      const Tensor y = attention(leaves[0], leaves[1], leaves[2], {.mask = mask});
      std::vector<Tensor> all_results = grad({y}, leaves, {.gradients = {q}});
      all_results.push_back(y.detach());
      return all_results;
    };
    const std::vector<Tensor> clean = run(0), dirty = run(hidden);
    for (std::size_t i = 0; i < clean.size(); ++i) CHECK_FALSE(any(dirty[i] != clean[i]));
  }
}

TEST_CASE("attention: a sink of -inf takes no weight") {
  const Implementation function = GENERATE(Implementation(attention), Implementation(reference::attention));
  Rng rng(43);
  const Tensor q = randn({1, 2, 5, 3}, rng), k = randn({1, 2, 7, 3}, rng), v = randn({1, 2, 7, 3}, rng);
  const Tensor sinks = full({2}, -infinity).set_requires_grad();
  const Tensor y = function(q, k, v, {.sinks = sinks});
  CHECK(distance(y, function(q, k, v, {})) < 1e-6);
  CHECK_FALSE(any(grad({y}, {sinks}, {.gradients = {y.detach()}})[0] != 0.0));
}

TEST_CASE("attention: the causal mask aligns the last query with the last key") {
  // Two queries of five keys: the first sees four of them.
  const Tensor v = reshape(tensor({1, 2, 3, 4, 5}, f64), {1, 1, 5, 1});
  const Tensor y = attention(zeros({1, 1, 2, 1}, f64), zeros({1, 1, 5, 1}, f64), v, {.mask = Mask::causal()});
  CHECK(y.at({0, 0, 0, 0}) == Approx(2.5));
  CHECK(y.at({0, 0, 1, 0}) == Approx(3));
}

TEST_CASE("attention: sizes of zero give empty results, or zeros where there are no keys") {
  for (const Implementation function : {Implementation(attention), Implementation(reference::attention)}) {
    const auto shape_for = [&](const Shape& q, const Shape& k) {
      Problem problem{"", q, k, {.mask = Mask::causal(), .sinks = empty({q[1]})}};
      problem.options.bias = empty({1, 1, 1, 1});
      const std::vector<Tensor> all_results = results(function, problem, f32);
      for (const Tensor& x : all_results) CHECK(all(is_finite(x)));
      CHECK_FALSE(any(all_results[3] != 0.0));
      return all_results.back().shape();
    };
    CHECK(shape_for({0, 2, 3, 5}, {0, 2, 7, 5}) == Shape{0, 2, 3, 5});
    CHECK(shape_for({2, 0, 3, 5}, {2, 0, 7, 5}) == Shape{2, 0, 3, 5});
    CHECK(shape_for({2, 3, 0, 5}, {2, 3, 7, 5}) == Shape{2, 3, 0, 5});
    CHECK(shape_for({2, 3, 7, 5}, {2, 3, 0, 5}) == Shape{2, 3, 7, 5});
  }
}

TEST_CASE("attention: second derivatives over several blocks agree with the reference") {
  Rng rng(29);
  const auto draw = [&](const Shape& shape) { return randn(shape, rng, f64).set_requires_grad(); };
  const Tensor q = draw({1, 1, 70, 2}), k = draw({1, 1, 150, 2}), v = draw({1, 1, 150, 2});
  const Tensor u = randn(q.shape(), rng, f64), w = randn(q.shape(), rng, f64);
  // d/dk of <w, d<u, y>/dq>, from either implementation of y.
  const auto second = [&](Implementation function) {
    const Tensor y = function(q, k, v, {.mask = Mask::causal(), .softcap = 2});
    const Tensor dq = grad({y}, {q}, {.gradients = {u}, .create_graph = true})[0];
    return grad({dq}, {k}, {.gradients = {w}})[0];
  };
  const std::int64_t before = runs_of("attention");
  const Tensor through_fused = second(attention);
  CHECK(runs_of("attention") == before + 1);
  CHECK(distance(through_fused, second(reference::attention)) < 1e-13);
}

TEST_CASE("attention: scopes with the same seed drop the same weights, and none is dropped without a scope") {
  Rng rng(31);
  const Tensor q = randn({1, 2, 100, 3}, rng), k = randn({1, 2, 100, 3}, rng), v = randn({1, 2, 100, 3}, rng);
  const auto with_seed = [&](std::uint64_t seed) {
    const TrainMode scope(seed);
    return attention(q, k, v, {.dropout = 0.5});
  };
  CHECK_FALSE(any(with_seed(1) != with_seed(1)));
  CHECK(any(with_seed(1) != with_seed(2)));
  CHECK_FALSE(any(attention(q, k, v, {.dropout = 0.5}) != attention(q, k, v)));
}

TEST_CASE("attention_weights: the weights of a call of attention") {
  Rng rng(37);
  const Tensor q = randn({2, 4, 9, 3}, rng), k = randn({2, 2, 11, 3}, rng), v = randn({2, 2, 11, 3}, rng);
  const AttentionOptions options{.mask = Mask::causal() & Mask::lengths({11, 4}),
                                 .bias = randn({4, 9, 11}, rng),
                                 .relative_bias = alibi_bias(alibi_slopes(4), 9, 11),
                                 .softcap = 3,
                                 .sinks = randn({4}, rng)};
  const Attention both = attention_with_weights(q, k, v, options);
  CHECK(distance(attention(q, k, v, options), both.output) < 1e-6);
  const Tensor chosen = attention_weights(q, k, options, {2, 1});
  CHECK(distance(chosen, concat({slice(both.weights, 1, 2, 3), slice(both.weights, 1, 1, 2)}, 1)) < 1e-6);
  const Tensor by_steps =
      attention_output(attention_softmax(attention_scores(q, k, options), options.sinks), v, options);
  CHECK_FALSE(any(by_steps != both.output));
}

TEST_CASE("alibi_slopes: those of the paper, also where the number of heads is no power of two") {
  CHECK(alibi_slopes(8, f64).to_vector() ==
        std::vector<double>{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625});
  CHECK(alibi_slopes(1, f64).to_vector() == std::vector<double>{0.00390625});
  const std::vector<double> six = alibi_slopes(6, f64).to_vector();
  const std::vector<double> expected{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
  CHECK(six == expected);
  CHECK_THROWS_AS(alibi_slopes(0), ValueError);
}

TEST_CASE("relative_buckets: those of T5") {
  // One query and 200 keys, of which the last is at its own position: keys at distances 199 to 0 behind it.
  const Indices behind = relative_buckets(1, 200);
  const auto at = [&](std::int64_t distance) { return behind[199 - distance]; };
  for (std::int64_t distance = 0; distance < 16; ++distance) CHECK(at(distance) == distance);
  CHECK(at(16) == 16);
  CHECK(at(32) == 21);
  CHECK(at(64) == 26);
  CHECK(at(127) == 31);
  CHECK(at(199) == 31);
  // Three queries and three keys: distances from -2 (behind) to 2 (ahead).
  const Indices both = relative_buckets(3, 3, {.bidirectional = true});
  CHECK(std::vector<std::int64_t>(both.values().begin(), both.values().end()) ==
        std::vector<std::int64_t>{2, 1, 0, 17, 18});
  CHECK(relative_buckets(3, 3)[4] == 0);
  CHECK_THROWS_AS(relative_buckets(3, 3, {.buckets = 1}), ValueError);
  CHECK_THROWS_AS(relative_buckets(3, 3, {.buckets = 5, .bidirectional = true}), ValueError);
  CHECK_THROWS_AS(relative_buckets(3, 3, {.max_distance = 16}), ValueError);
}
