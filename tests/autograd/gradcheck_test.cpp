#include "fovea/autograd/gradcheck.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "fovea/autograd/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/rng.h"
#include "fovea/error.h"
#include "tests/support/catch.h"

// The checker is checked with functions whose gradients are wrong on purpose.

using namespace fovea;

namespace {

Tensor random(const Shape& shape, std::uint64_t seed = 3) {
  Rng rng(seed);
  return randn(shape, rng, f64);
}

// x x, with a rule of its own: (x, dy) -> gradient.
template <class Rule>
Tensor square_with_rule(const Tensor& x, Rule rule) {
  return record("square", (x * x).detach(), {x}, {x},
                [rule](const Saved& saved, const Tensor& dy, const Needs&) -> Gradients {
                  return {rule(saved[0], dy)};
                });
}

template <class Rule>
GradcheckReport check_rule(const Shape& shape, Rule rule, const GradcheckOptions& options = {}) {
  return gradcheck([&](const Tensor& x) { return square_with_rule(x, rule); }, random(shape), options);
}

// Every element of an input is wrong, and nothing else is.
void check_all_wrong(const GradcheckReport& report, std::int64_t elements) {
  CHECK_FALSE(report.passed());
  CHECK(static_cast<std::int64_t>(report.failures.size()) == elements);
  for (const ElementCheck& element : report.failures) CHECK(element.verdict == Verdict::wrong);
}

}  // namespace

TEST_CASE("gradcheck passes what is right, at both orders") {
  const auto passes = [](const NamedFunction& f, const Inputs& inputs) {
    const GradcheckReport report = gradcheck(f, inputs, {.order = 2});
    INFO(to_string(report));
    CHECK(report.passed());
    CHECK(report.worst() < 1e-8);
    CHECK(report.evaluations >= 8 * report.elements);
  };
  passes([](const Inputs& in) { return in["x"] * in["y"]; },
         {{"x", random({3, 5}, 1)}, {"y", random({5}, 2)}});
  passes([](const Inputs& in) { return exp(in["x"]) / (1 + exp(in["x"])); }, {{"x", random({3, 5})}});
  passes([](const Inputs& in) { return softmax(matmul(in["a"], in["b"])); },
         {{"a", random({3, 5}, 1)}, {"b", random({5, 7}, 2)}});
  passes(
      [](const Inputs& in) { return square_with_rule(in["x"], [](auto x, auto dy) { return 2 * x * dy; }); },
      {{"x", random({3, 5})}});
  // Elements so near a kink, or so large, that one fixed step would not do.
  passes([](const Inputs& in) { return relu(in["x"]); }, {{"x", tensor({0.002, -0.001, 3e-5, 1}, f64)}});
  passes([](const Inputs& in) { return in["x"] * in["x"]; }, {{"x", tensor({1e4, -2e6, 1e-9}, f64)}});
  passes([](const Inputs& in) { return log(in["x"]); }, {{"x", tensor({0.003, 0.2, 100}, f64)}});
  passes([](const Inputs& in) { return in["x"] * scalar(3, f64); }, {{"x", scalar(2, f64)}});
}

TEST_CASE("gradcheck takes functions of tensors in order, and of one Inputs") {
  const auto product = [](const Tensor& a, const Tensor& b) { return a * exp(b); };
  const Tensor a = random({3}, 1), b = random({3}, 2);
  CHECK(gradcheck(product, {{"a", a}, {"b", b}}, {.order = 2}).passed());
  CHECK(gradcheck([](const Inputs& in) { return in["a"] * exp(in["b"]); }, {{"a", a}, {"b", b}}).passed());
  Tensor (*const unary)(const Tensor&) = tanh;
  CHECK(gradcheck(unary, {{"x", a}}).passed());
  CHECK(gradcheck(unary, a).tensors[0].input == "x");
  CHECK(gradcheck(matmul, {{"A", random({3, 5})}, {"B", random({5, 2})}}, {.order = 2}).elements ==
        25 + 25 + 6);
  CHECK_THROWS_AS(gradcheck(product, {{"a", a}}), ValueError);
  CHECK_THROWS_WITH(gradcheck(product, {{"a", a}}), ContainsSubstring("takes 2 tensors, and 1"));
  CHECK_THROWS_AS(gradcheck(product, {{"a", a}, {"b", b}, {"c", b}}), ValueError);
  CHECK(fmt::format("{}", gradcheck(product, {{"a", a}, {"b", b}})).find("passed: 6 elements") == 0);
}

TEST_CASE("gradcheck converges on a function that turns within its first step") {
  // tanh(1e3 x) turns within 1e-3, and the first step is seven times that.
  const GradcheckReport report = gradcheck([](const Tensor& x) { return tanh(1000 * x); },
                                           tensor({0.0003, -0.0011, 0.0007}, f64), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("gradcheck finds a gradient scaled by 1.001") {
  check_all_wrong(check_rule({3, 5}, [](auto x, auto dy) { return 2.002 * x * dy; }), 15);
}

TEST_CASE("gradcheck finds a wrong sign") {
  check_all_wrong(check_rule({3, 5}, [](auto x, auto dy) { return -2 * x * dy; }), 15);
}

TEST_CASE("gradcheck finds a gradient that is zero") {
  const GradcheckReport report = check_rule({3, 5}, [](auto x, auto dy) { return 0 * x * dy; });
  check_all_wrong(report, 15);
  CHECK_FALSE(report.tensors[0].vacuous);
}

TEST_CASE("gradcheck finds a transposed gradient, on a square input") {
  // The diagonal is right by symmetry.
  check_all_wrong(check_rule({3, 3}, [](auto x, auto dy) { return transpose(2 * x * dy); }), 6);
}

TEST_CASE("gradcheck finds a forgotten broadcast sum") {
  const auto f = [](const Inputs& in) {
    const Tensor &x = in["x"], &bias = in["bias"];
    return record("add_bias", (x + bias).detach(), {x, bias}, {},
                  [](const Saved&, const Tensor& dy, const Needs&) -> Gradients {
                    return {dy, select(dy, 0, 0)};
                  });
  };
  const GradcheckReport report = gradcheck(f, {{"x", random({3, 5}, 1)}, {"bias", random({5}, 2)}});
  check_all_wrong(report, 5);
  for (const ElementCheck& element : report.failures) CHECK(element.input == "bias");
}

TEST_CASE("gradcheck finds a forgotten term") {
  // d(x y) without the part of y.
  const auto f = [](const Inputs& in) { return in["x"] * in["y"].detach() + 0 * in["y"]; };
  const GradcheckReport report = gradcheck(f, {{"x", random({3}, 1)}, {"y", random({3}, 2)}});
  check_all_wrong(report, 3);
  for (const ElementCheck& element : report.failures) CHECK(element.input == "y");
}

TEST_CASE("gradcheck finds a detached output") {
  check_all_wrong(gradcheck([](const Tensor& x) { return (x * x).detach(); }, random({3, 5})), 15);
}

TEST_CASE("gradcheck finds a double-counted use") {
  const auto f = [](const Tensor& x) {
    return record("identity", x.detach(), {x, x}, {},
                  [](const Saved&, const Tensor& dy, const Needs&) -> Gradients {
                    return {dy, dy};
                  });
  };
  check_all_wrong(gradcheck(f, random({3, 5})), 15);
}

TEST_CASE("gradcheck finds a gradient that is wrong at one element, and names it") {
  const auto rule = [](const Tensor& x, const Tensor& dy) {
    std::vector<double> factor(15, 2);
    factor[2 * 5 + 3] = 2.1;
    return from_values(factor, {3, 5}, f64) * x * dy;
  };
  const GradcheckReport report = check_rule({3, 5}, rule);
  check_all_wrong(report, 1);
  const ElementCheck& element = report.failures[0];
  CHECK(element.input == "x");
  CHECK(element.index == Shape{2, 3});
  CHECK(element.analytic == Approx(1.05 * element.numeric));
  CHECK(report.tensors[0].worst == Approx(std::abs(element.difference())));
  const std::string text = to_string(report);
  CHECK_THAT(text, ContainsSubstring("FAILED") && ContainsSubstring("(2, 3)") && ContainsSubstring("wrong"));
  CHECK_THAT(text, ContainsSubstring(fmt::format("{:.15g}", element.analytic)));
  CHECK_THAT(text, ContainsSubstring(fmt::format("{:.15g}", element.numeric)));
}

TEST_CASE("gradcheck finds a gradient that is wrong for non-contiguous inputs only") {
  const auto f = [](const Tensor& x) {
    return square_with_rule(x, [](const Tensor& saved, const Tensor& dy) {
      return (saved.is_contiguous() ? 2 : 2.01) * saved * dy;
    });
  };
  CHECK(gradcheck(f, random({3, 5})).passed());
  check_all_wrong(gradcheck([&](const Tensor& x) { return f(transpose(x)); }, random({3, 5})), 15);
}

TEST_CASE("gradcheck finds a second derivative that is wrong where the first is right") {
  const auto second_order_only = [](auto rule) {
    CHECK(check_rule({3, 5}, rule).passed());
    const GradcheckReport report = check_rule({3, 5}, rule, {.order = 2});
    CHECK_FALSE(report.passed());
    for (const ElementCheck& element : report.failures) CHECK(element.order == 2);
    return report;
  };
  const GradcheckReport no_x = second_order_only([](auto x, auto dy) { return 2 * x.detach() * dy; });
  for (const ElementCheck& element : no_x.failures) CHECK(element.input == "x");
  const GradcheckReport no_dy = second_order_only([](auto x, auto dy) { return 2 * x * dy.detach(); });
  for (const ElementCheck& element : no_dy.failures) CHECK(element.input == "cotangent");
  second_order_only(
      [](auto x, auto dy) { return recording() ? 2.002 * x * dy - 0.002 * (x * dy).detach() : 2 * x * dy; });
}

TEST_CASE("gradcheck does not let a vacuous check pass") {
  // The gradient of a summed softmax is zero whatever the rule says.
  const auto summed = [](const Tensor& x) { return sum(softmax(x)); };
  const GradcheckReport report = gradcheck(summed, random({5}));
  CHECK(report.failures.empty());
  CHECK_FALSE(report.passed());
  CHECK(report.tensors[0].vacuous);
  CHECK_THAT(to_string(report), ContainsSubstring("vacuous") && ContainsSubstring("every gradient is zero"));
  CHECK(gradcheck(summed, random({5}), {.expect_zero = {"x"}}).passed());

  const auto unused = [](const Inputs& in) { return in["x"] * 2; };
  const Inputs both{{"x", random({3})}, {"y", random({3})}};
  CHECK_FALSE(gradcheck(unused, both).passed());
  CHECK(gradcheck(unused, both, {.expect_zero = {"y"}}).passed());

  const GradcheckReport nothing = gradcheck([](const Tensor& x) { return x * x; }, zeros({3, 0}, f64));
  CHECK_FALSE(nothing.passed());
  CHECK_THAT(to_string(nothing), ContainsSubstring("it has no element"));
  CHECK_FALSE(gradcheck([](const Inputs&) { return scalar(1, f64); }, Inputs({})).passed());
}

TEST_CASE("gradcheck takes a gradient that is not finite for wrong") {
  const double bad =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  check_all_wrong(check_rule({3, 5}, [=](auto x, auto dy) { return 2 * x * dy * bad; }), 15);
  // And a function that is not finite has no derivative to compare with.
  const auto f = [=](const Tensor& x) {
    return square_with_rule(x, [](auto v, auto dy) { return 2 * v * dy; }) * bad;
  };
  CHECK_FALSE(gradcheck(f, random({3})).passed());
}

TEST_CASE("gradcheck leaves the caller's tensors alone") {
  Rng rng(5);
  const Tensor x = randn({3, 5}, rng, f32);
  const std::vector<double> before = x.to_vector();
  CHECK(gradcheck([](const Tensor& v) { return v * v; }, x, {.order = 2}).passed());
  CHECK(x.to_vector() == before);
  CHECK(x.version() == 0);
  CHECK(x.dtype() == f32);
  CHECK_FALSE(x.requires_grad());
}

TEST_CASE("gradcheck_in_place reads parameters where they are, and puts them back") {
  Tensor W = random({3, 5}, 1);
  Tensor b = random({5}, 2);
  W.set_requires_grad();
  W.set_grad(ones({3, 5}, f64));
  const Tensor x = random({2, 3}, 3);
  const std::vector<double> before = W.to_vector();
  const GradcheckReport report =
      gradcheck_in_place([&] { return tanh(linear(x, W, b)); }, {{"W", W}, {"b", b}}, {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.elements == 20 + 20 + 10);  // order 2 adds the cotangent (2, 5)
  CHECK(W.to_vector() == before);
  CHECK(W.requires_grad());
  CHECK(W.grad().to_vector() == std::vector<double>(15, 1));
  CHECK_FALSE(b.requires_grad());

  // Views with strides of their own can be moved in place as well.
  const Tensor transposed = transpose(random({5, 3}, 4));
  CHECK(gradcheck_in_place([&] { return x * transpose(slice(transposed, 1, 0, 2)); }, {{"t", transposed}})
            .passed());
}

TEST_CASE("gradcheck_in_place puts an element back when the function throws") {
  const Tensor x = random({3}, 1);
  const std::vector<double> before = x.to_vector();
  int calls = 0;
  const auto f = [&] {
    if (++calls == 4) throw ValueError("[test] enough");
    return x * x;
  };
  CHECK_THROWS_AS(gradcheck_in_place(f, {{"x", x}}), ValueError);
  CHECK(x.to_vector() == before);
  CHECK_FALSE(x.requires_grad());
}

TEST_CASE("gradcheck refuses what it can't check") {
  const auto square = [](const Tensor& x) { return x * x; };
  CHECK_THROWS_WITH(gradcheck(square, random({3}), {.order = 3}), ContainsSubstring("[gradcheck] order 3"));
  CHECK_THROWS_WITH(gradcheck(square, random({3}), {.expect_zero = {"z"}}), ContainsSubstring("'z'"));
  const Tensor narrow = ones({3});
  CHECK_THROWS_AS(gradcheck_in_place([&] { return narrow * narrow; }, {{"x", narrow}}), DtypeError);
  const Tensor repeated = broadcast_to(random({3, 1}), {3, 5});
  CHECK_THROWS_WITH(gradcheck_in_place([&] { return repeated * repeated; }, {{"x", repeated}}),
                    ContainsSubstring("share memory"));
  const Inputs inputs{{"x", narrow}, {"y", narrow}};
  CHECK_THROWS_WITH(inputs["z"], ContainsSubstring("'z'") && ContainsSubstring("x, y"));
}

TEST_CASE("gradcheck's report lists the worst first and says how many it leaves out") {
  const auto rule = [](const Tensor& x, const Tensor& dy) { return 2 * x * dy + arange(15, f64); };
  const GradcheckReport report =
      gradcheck([&](const Tensor& x) { return square_with_rule(x, rule); }, random({15}));
  check_all_wrong(report, 14);
  for (std::size_t i = 0; i < 14; ++i)
    CHECK(report.failures[i].index == Shape{14 - static_cast<std::int64_t>(i)});
  CHECK_THAT(to_string(report, 3),
             ContainsSubstring("(12,)") && !ContainsSubstring("(11,)") && ContainsSubstring("and 11 more"));
}
