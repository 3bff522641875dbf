#include "fovea/train/optimizers/optimizer.h"

#include <cmath>
#include <limits>
#include <memory>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/state.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

using Names = std::vector<std::string>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// Steps a parameter of one element with each gradient in turn, and returns its values after each step.
template <class O>
std::vector<double> path(const Tensor& p, O& optimizer, std::initializer_list<double> gradients) {
  std::vector<double> values;
  for (const double gradient : gradients) {
    p.set_grad(full(p.shape(), gradient, p.dtype()));
    optimizer.step();
    values.push_back(p.to_vector()[0]);
  }
  return values;
}

// Gradients that differ from element to element.
void set_random_gradients(const std::vector<NamedTensor>& parameters, Rng& rng) {
  for (const auto& [name, p] : parameters) p.set_grad(randn(p.shape(), rng, p.dtype()));
}

TEST_CASE("Sgd: values computed by hand", "[train]") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor p = parameter(full({1}, 2, dtype));
  SECTION("plain") {
    Sgd sgd({{"p", p}}, {.learning_rate = 0.25});
    const std::vector<double> values = path(p, sgd, {1, -3});
    CHECK(values[0] == Approx(2 - 0.25));
    CHECK(values[1] == Approx(2 - 0.25 + 0.75));
  }
  SECTION("momentum") {
    // u = 1, then 0.5 + (-3) = -2.5, then -1.25 + 2 = 0.75.
    Sgd sgd({{"p", p}}, {.learning_rate = 0.25, .momentum = 0.5});
    const std::vector<double> values = path(p, sgd, {1, -3, 2});
    CHECK(values[0] == Approx(1.75));
    CHECK(values[1] == Approx(1.75 + 0.625));
    CHECK(values[2] == Approx(1.75 + 0.625 - 0.1875));
  }
}

TEST_CASE("Sgd: values with Nesterov momentum computed by hand", "[train]") {
  // u = 1, then 0.5 - 3 = -2.5; the steps are g + mu u = 1.5, then -3 - 1.25 = -4.25.
  const Tensor p = parameter(full({1}, 2, GENERATE(f32, f64)));
  Sgd sgd({{"p", p}}, {.learning_rate = 0.25, .momentum = 0.5, .nesterov = true});
  const std::vector<double> values = path(p, sgd, {1, -3});
  CHECK(values[0] == Approx(2 - 0.25 * 1.5));
  CHECK(values[1] == Approx(2 - 0.25 * 1.5 + 0.25 * 4.25));
  CHECK_THROWS_WITH(Sgd({{"p", p}}, {.nesterov = true}), ContainsSubstring("momentum is 0"));
}

TEST_CASE("Lion: values computed by hand, with weight decay of matrices", "[train]") {
  const Dtype dtype = GENERATE(f32, f64);
  const double precision = dtype == f32 ? 1e-6 : 1e-13;
  const Tensor W = parameter(full({1, 1}, 2, dtype));
  Lion lion({{"W", W}}, {.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.5});
  // c = 0.5 g = 2; then m = 1, c = 0.5 - 0.25 = 0.25; then m = 0.75 - 0.125 = 0.625, c = 0.3125 - 1.5 < 0.
  const std::vector<double> values = path(W, lion, {4, -0.5, -3});
  CHECK(values[0] == Approx(2 * 0.95 - 0.1).epsilon(precision));
  CHECK(values[1] == Approx(values[0] * 0.95 - 0.1).epsilon(precision));
  CHECK(values[2] == Approx(values[1] * 0.95 + 0.1).epsilon(precision));
  CHECK(state(lion).tensors[0].tensor.to_vector()[0] == Approx(0.75 * 0.625 - 0.75).epsilon(precision));
}

TEST_CASE("Lion: a gradient of zero moves nothing, and a NaN is passed on", "[train]") {
  const Tensor p = parameter(zeros({3}));
  Lion lion({{"p", p}}, {.learning_rate = 0.1});
  CHECK(path(p, lion, {0})[0] == 0);
  CHECK(std::isnan(path(p, lion, {nan})[0]));
}

TEST_CASE("Adam: values at t = 1 and 2 computed by hand", "[train]") {
  const Dtype dtype = GENERATE(f32, f64);
  const double precision = dtype == f32 ? 1e-6 : 1e-13;
  const Tensor p = parameter(full({1}, 1, dtype));
  SECTION("the defaults") {
    // m / (1 - beta1^t): 0.5, then 0.02 / 0.19; v / (1 - beta2^t): 0.25, then 0.00031225 / 0.001999.
    Adam adam({{"p", p}}, {.learning_rate = 0.1});
    const std::vector<double> values = path(p, adam, {0.5, -0.25});
    CHECK(values[0] == Approx(1 - 0.1 * 0.5 / (0.5 + 1e-8)).epsilon(precision));
    CHECK(values[1] == Approx(values[0] - 0.1 * (0.02 / 0.19) / (std::sqrt(0.00031225 / 0.001999) + 1e-8))
                           .epsilon(precision));
  }
  SECTION("other constants") {
    // m: 0.25, then 0; v: 0.0625, then 0.0625 again.
    Adam adam({{"p", p}}, {.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.125});
    const std::vector<double> values = path(p, adam, {0.5, -0.25});
    CHECK(values[0] == Approx(1 - 0.1 * 0.5 / (0.5 + 0.125)).epsilon(precision));
    CHECK(values[1] == Approx(values[0]).epsilon(precision));
  }
}

TEST_CASE("Adam: the first step has the size of the learning rate, whatever the gradient", "[train]") {
  const double gradient = GENERATE(1e-4, 1.0, 1e6);
  const Tensor p = parameter(zeros({3}, f64));
  Adam adam({{"p", p}}, {.learning_rate = 0.01});
  CHECK(path(p, adam, {gradient})[0] == Approx(-0.01).epsilon(1e-3));
}

TEST_CASE("Adam: gradients of zero move nothing, even if eps is 0, and a NaN is passed on", "[train]") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor p = parameter(full({1}, 2, dtype));
  Adam adam({{"p", p}}, {.learning_rate = 0.5, .eps = 0});
  CHECK(path(p, adam, {0, 0}) == std::vector<double>{2, 2});
  // A gradient whose square underflows asks for no step either, not for an infinite one.
  CHECK(path(p, adam, {dtype == f32 ? 1e-30 : 1e-200})[0] == 2);
  CHECK(std::isnan(path(p, adam, {nan})[0]));
}

TEST_CASE("every optimizer leaves parameters alone whose gradients are 0, even if eps is 0", "[train]") {
  const Tensor p = parameter(full({3, 5}, 2));
  const std::vector<NamedTensor> parameters{{"p", p}};
  const auto check = [&](Optimizer&& optimizer) {
    for (int i = 0; i < 3; ++i) {
      p.set_grad(zeros(p.shape()));
      optimizer.step();
    }
    CHECK(p.to_vector() == std::vector<double>(15, 2));
  };
  check(Sgd(parameters, {.learning_rate = 0.5, .momentum = 0.9}));
  check(Lion(parameters, {.learning_rate = 0.5, .weight_decay = 0}));
  check(Adam(parameters, {.learning_rate = 0.5, .eps = 0}));
  check(AdamW(parameters, {.learning_rate = 0.5, .eps = 0, .weight_decay = 0}));
  check(Muon(parameters, {.learning_rate = 0.5, .eps = 0, .weight_decay = 0}));
}

TEST_CASE("AdamW: weight decay shrinks matrices before Adam's update, and leaves vectors alone", "[train]") {
  const Tensor W = parameter(full({1, 1}, 2, f64));
  const Tensor b = parameter(full({1}, 2, f64));
  AdamW adamw({{"W", W}, {"b", b}}, {.learning_rate = 0.1, .weight_decay = 0.5});
  for (const auto& [name, p] : adamw.parameters()) p.set_grad(full(p.shape(), 0.5, f64));
  adamw.step();
  const double update = 0.1 * 0.5 / (0.5 + 1e-8);
  CHECK(W.at({0, 0}) == Approx(2 * (1 - 0.1 * 0.5) - update).epsilon(1e-13));
  CHECK(b.at({0}) == Approx(2 - update).epsilon(1e-13));
  CHECK(adamw.decayed() == Names{"W"});
  CHECK(adamw.not_decayed() == Names{"b"});
}

TEST_CASE("AdamW: the parameters that decay can be chosen, and a weight decay of 0 gives Adam", "[train]") {
  Rng rng(1);
  const Linear layer(3, 5, rng);
  const Linear twin = clone(layer);
  AdamW chosen(named_parameters(layer), {.decays = [](const NamedTensor& p) { return p.name == "b"; }});
  CHECK(chosen.decayed() == Names{"b"});
  CHECK(chosen.not_decayed() == Names{"W"});

  AdamW without(named_parameters(layer), {.weight_decay = 0});
  Adam adam(named_parameters(twin));
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Rng a(seed), b(seed);
    set_random_gradients(without.parameters(), a);
    set_random_gradients(adam.parameters(), b);
    without.step();
    adam.step();
  }
  CHECK(layer.W.to_vector() == twin.W.to_vector());
  CHECK(layer.b.to_vector() == twin.b.to_vector());
}

TEST_CASE("step: every element follows the formula, f32 against f64", "[train]") {
  Rng rng(1);
  const Linear layer(37, 41, rng);
  const Linear exact = to(layer, f64);
  AdamW single(named_parameters(layer), {.learning_rate = 0.01, .weight_decay = 0.1});
  AdamW twice(named_parameters(exact), {.learning_rate = 0.01, .weight_decay = 0.1});
  for (int step = 0; step < 5; ++step) {
    set_random_gradients(single.parameters(), rng);
    exact.W.set_grad(to(layer.W.grad(), f64));
    exact.b.set_grad(to(layer.b.grad(), f64));
    single.step();
    twice.step();
  }
  const std::vector<double> found = layer.W.to_vector();
  const std::vector<double> expected = exact.W.to_vector();
  for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == Approx(expected[i]).margin(1e-6));
}

TEST_CASE("step: a parameter without a gradient keeps its value and its state", "[train]") {
  const Tensor p = parameter(ones({2, 3}, f64));
  const Tensor late = parameter(ones({2, 3}, f64));
  AdamW adamw({{"p", p}, {"late", late}}, {.learning_rate = 0.1});
  for (int step = 0; step < 7; ++step) path(p, adamw, {0.5});
  CHECK(late.to_vector() == std::vector<double>(6, 1.0));
  CHECK(late.version() == 0);

  p.set_grad({});
  const Tensor fresh = parameter(ones({2, 3}, f64));
  AdamW first({{"fresh", fresh}}, {.learning_rate = 0.1});
  CHECK(path(late, adamw, {0.5, 2}) == path(fresh, first, {0.5, 2}));
}

TEST_CASE("step: takes strided gradients, and gradients that have a graph", "[train]") {
  const Tensor p = parameter(zeros({2, 3}));
  Sgd sgd({{"p", p}}, {.learning_rate = 1});
  p.set_grad(transpose(tensor({{1, 2}, {3, 4}, {5, 6}})));
  sgd.step();
  CHECK(p.to_vector() == std::vector<double>{-1, -3, -5, -2, -4, -6});

  sgd.zero_grad();
  backward(sum(p * p), {.create_graph = true});
  sgd.step();
  CHECK(p.to_vector() == std::vector<double>{1, 3, 5, 2, 4, 6});
}

TEST_CASE("step: backward through a retained graph that saved a parameter is an error", "[train]") {
  Rng rng(1);
  const Linear layer(3, 5, rng);
  Sgd sgd(named_parameters(layer));
  const Tensor x = parameter(randn({2, 3}, rng));
  const Tensor loss = sum(layer(x) * randn({2, 5}, rng));
  backward(loss, {.retain_graph = true});
  const std::vector<double> gradient = layer.W.grad().to_vector();
  sgd.step();
  CHECK_THROWS_WITH(backward(loss, {.retain_graph = true}),
                    ContainsSubstring("was changed after it was used"));
  CHECK_THROWS_AS(backward(loss, {.retain_graph = true}), GraphError);
  CHECK(layer.W.grad().to_vector() == gradient);
}

TEST_CASE("zero_grad: drops the gradients, so that the next backward does not add to them", "[train]") {
  const Tensor p = parameter(tensor({3, 5}));
  Sgd sgd({{"p", p}});
  backward(sum(p * 2.0));
  sgd.zero_grad();
  CHECK_FALSE(p.grad().defined());
  backward(sum(p * 3.0));
  CHECK(p.grad().to_vector() == std::vector<double>{3, 3});
}

TEST_CASE("set_learning_rate: takes effect in the next step", "[train]") {
  const Tensor p = parameter(zeros({1}, f64));
  Sgd sgd({{"p", p}}, {.learning_rate = 0.5});
  CHECK(sgd.learning_rate() == 0.5);
  CHECK(path(p, sgd, {1})[0] == Approx(-0.5));
  sgd.set_learning_rate(0.25);
  CHECK(path(p, sgd, {1})[0] == Approx(-0.75));
  sgd.set_learning_rate(0);
  CHECK(path(p, sgd, {1})[0] == Approx(-0.75));
}

TEST_CASE("step and clip_gradients: the same bits for any number of threads", "[train]") {
  const int before = threads();
  std::vector<std::vector<double>> results;
  for (const int n : {1, 2, 3, 64}) {
    set_threads(n);
    Rng rng(1);
    const Tensor W = parameter(randn({211, 307}, rng));
    const Tensor b = parameter(randn({100'003}, rng));
    Sgd sgd({{"b", b}}, {.momentum = 0.9});
    AdamW adamw({{"W", W}});
    results.emplace_back();
    for (int step = 0; step < 3; ++step) {
      set_random_gradients({{"W", W}, {"b", b}}, rng);
      results.back().push_back(clip_gradients({{"W", W}, {"b", b}}, 1));
      sgd.step();
      adamw.step();
    }
    for (const Tensor& p : {W, b}) {
      const std::vector<double> values = p.to_vector();
      results.back().insert(results.back().end(), values.begin(), values.end());
    }
  }
  set_threads(before);
  for (std::size_t i = 1; i < results.size(); ++i) CHECK(results[i] == results[0]);
}

TEST_CASE("optimizer state: is named after the parameters, and saved and loaded like a layer", "[train]") {
  Rng rng(1);
  const Linear layer(3, 5, rng);
  const Linear resumed = clone(layer);
  AdamW adamw(named_parameters(layer));
  const State fresh = state(adamw);
  Names names;
  for (const NamedTensor& named : fresh.tensors) names.push_back(named.name);
  CHECK(names == Names{"W.m", "b.m", "W.v", "b.v", "W.updates", "b.updates"});
  CHECK(parameter_count(adamw) == 0);

  set_random_gradients(adamw.parameters(), rng);
  adamw.step();
  const State model = state(layer);
  const State optimizer = state(adamw);
  const Rng at_save = rng;
  set_random_gradients(adamw.parameters(), rng);
  adamw.step();

  Linear into = resumed;
  load(into, model);
  AdamW again(named_parameters(into));
  load(again, optimizer);
  Rng replay = at_save;
  set_random_gradients(again.parameters(), replay);
  again.step();
  CHECK(into.W.to_vector() == layer.W.to_vector());
  CHECK(into.b.to_vector() == layer.b.to_vector());

  const Tensor p = parameter(zeros({3}));
  CHECK(state(Sgd({{"p", p}})).tensors.empty());
  CHECK(state(Sgd({{"p", p}}, {.momentum = 0.5})).tensors[0].name == "p.momentum");
}

TEST_CASE("optimizer state: a mismatch is an error that names it, and nothing is loaded", "[train]") {
  const Tensor p = parameter(zeros({3}));
  Sgd sgd({{"p", p}}, {.momentum = 0.5});
  path(p, sgd, {1});
  const State before = state(sgd);
  CHECK_THROWS_WITH(load(sgd, state(Adam({{"p", p}}))),
                    ContainsSubstring("missing: p.momentum") && ContainsSubstring("unexpected: p.updates"));
  CHECK_THROWS_WITH(load(sgd, state(Sgd({{"p", parameter(zeros({5}))}}, {.momentum = 0.5}))),
                    ContainsSubstring("mis-shaped: p.momentum"));
  CHECK(state(sgd).tensors[0].tensor.to_vector() == before.tensors[0].tensor.to_vector());
}

// The loss that an optimizer reaches on the least-squares problem x W* + b* = y without noise.
template <class MakeOptimizer>
double error_after(int steps, const MakeOptimizer& make) {
  Rng rng(1);
  const Linear truth(3, 2, rng);
  const Linear layer(3, 2, rng);
  const auto optimizer = make(named_parameters(layer));
  for (int step = 0; step < steps; ++step) {
    const Tensor x = randn({17, 3}, rng);
    const Tensor difference = layer(x) - truth(x).detach();
    backward(mean(difference * difference));
    clip_gradients(optimizer->parameters(), 10);
    optimizer->step();
    optimizer->zero_grad();
  }
  return max(abs(layer.W - truth.W)).item();
}

TEST_CASE("every optimizer solves a least-squares problem", "[train]") {
  CHECK(error_after(0, [](auto p) { return std::make_unique<Sgd>(p); }) > 0.1);
  CHECK(error_after(300, [](auto p) { return std::make_unique<Sgd>(p, SgdOptions{.learning_rate = 0.3}); }) <
        1e-5);
  CHECK(error_after(300, [](auto p) {
          return std::make_unique<Sgd>(p, SgdOptions{.learning_rate = 0.1, .momentum = 0.8});
        }) < 1e-5);
  CHECK(error_after(500, [](auto p) {
          return std::make_unique<Adam>(p, AdamOptions{.learning_rate = 0.03});
        }) < 1e-3);
  CHECK(error_after(500, [](auto p) {
          return std::make_unique<AdamW>(p, AdamWOptions{.learning_rate = 0.03, .weight_decay = 1e-4});
        }) < 1e-3);
  CHECK(error_after(300, [](auto p) {
          return std::make_unique<Sgd>(p,
                                       SgdOptions{.learning_rate = 0.1, .momentum = 0.8, .nesterov = true});
        }) < 1e-5);
  // Both take steps of a fixed size, so they come no nearer than that.
  CHECK(error_after(2000, [](auto p) {
          return std::make_unique<Lion>(p, LionOptions{.learning_rate = 1e-3});
        }) < 1e-2);
  CHECK(error_after(500, [](auto p) {
          return std::make_unique<Muon>(p, MuonOptions{.learning_rate = 5e-3, .adam_lr_scale = 1});
        }) < 1e-2);
}

TEST_CASE("optimizers: the number of live bytes does not grow from step to step", "[train]") {
  Rng rng(1);
  const Linear layer(31, 37, rng);
  AdamW adamw(named_parameters(layer));
  const Tensor x = randn({7, 31}, rng);
  std::vector<std::int64_t> live;
  for (int step = 0; step < 50; ++step) {
    const Tensor y = layer(x);
    backward(mean(y * y));
    clip_gradients(adamw.parameters(), 1e-3);
    adamw.step();
    live.push_back(memory().live_bytes);
  }
  CHECK(live[49] == live[2]);
}

TEST_CASE("optimizers: wrong options and parameters are errors", "[train]") {
  const Tensor p = parameter(zeros({3}));
  const std::vector<NamedTensor> one{{"p", p}};
  CHECK_THROWS_WITH(Sgd({}), ContainsSubstring("[Sgd] the list of parameters is empty"));
  CHECK_THROWS_WITH(AdamW({{"p", p}, {"q", p}}),
                    ContainsSubstring("[AdamW] 'q' is in the list of parameters twice"));
  CHECK_THROWS_WITH(Sgd({{"p", p}, {"p", parameter(zeros({5}))}}),
                    ContainsSubstring("[Sgd] two parameters are named 'p'"));
  CHECK_THROWS_WITH(Adam({{"p", zeros({3})}}),
                    ContainsSubstring("[Adam] 'p', shape (3,), does not require a gradient") &&
                        ContainsSubstring("trainable_parameters(model)"));
  CHECK_THROWS_WITH(Sgd({{"p", transpose(zeros({2, 3})).set_requires_grad()}}),
                    ContainsSubstring("row-major"));
  CHECK_THROWS_WITH(Sgd(one, {.learning_rate = -0.1}), ContainsSubstring("learning_rate is -0.1"));
  CHECK_THROWS_AS(Sgd(one, {.learning_rate = nan}), ValueError);
  CHECK_THROWS_AS(Sgd(one, {.learning_rate = infinity}), ValueError);
  CHECK_THROWS_AS(Sgd(one, {.momentum = 1}), ValueError);
  CHECK_THROWS_AS(Adam(one, {.beta1 = 1}), ValueError);
  CHECK_THROWS_AS(Adam(one, {.beta2 = -0.1}), ValueError);
  CHECK_THROWS_AS(Adam(one, {.eps = -1e-8}), ValueError);
  CHECK_THROWS_AS(AdamW(one, {.weight_decay = -0.1}), ValueError);
  CHECK_THROWS_AS(Lion(one, {.beta1 = 1}), ValueError);
  CHECK_THROWS_AS(Lion(one, {.beta2 = -1}), ValueError);
  CHECK_THROWS_AS(Muon(one, {.momentum = 1}), ValueError);
  CHECK_THROWS_AS(Muon(one, {.steps = 0}), ValueError);
  CHECK_THROWS_AS(Muon(one, {.adam_lr_scale = -1}), ValueError);
  CHECK_THROWS_WITH(Muon(one, {.matrices = [](const NamedTensor&) { return true; }}),
                    ContainsSubstring("'p', shape (3,)"));
  Sgd sgd(one);
  CHECK_THROWS_AS(sgd.set_learning_rate(-1), ValueError);
  CHECK(sgd.learning_rate() == 0.01);
}

}  // namespace
}  // namespace fovea
