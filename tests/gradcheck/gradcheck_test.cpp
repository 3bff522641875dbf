#include <fmt/format.h>

#include <cmath>
#include <string>

#include "fovea/autograd/base/error.h"
#include "tests/gradcheck/square.h"
#include "tests/support/catch.h"

// gradcheck itself, tested with functions whose gradients are wrong on purpose.

using namespace fovea;

namespace {

// Every element of an input is wrong, and nothing else is.
void check_all_wrong(const GradcheckReport& report, std::int64_t elements) {
  CHECK_FALSE(report.passed());
  CHECK(static_cast<std::int64_t>(report.failures.size()) == elements);
  for (const ElementCheck& element : report.failures) CHECK(element.verdict == Verdict::wrong);
}

}  // namespace

TEST_CASE("gradcheck passes correct gradients of both orders") {
  const auto passes = [](const NamedFunction& f, const Inputs& inputs) {
    const GradcheckReport report = gradcheck(f, inputs, {.order = 2});
    INFO(to_string(report));
    CHECK(report.passed());
    CHECK(report.worst() < 1e-8);
    CHECK(report.evaluations >= 6 * report.elements);
  };
  passes([](const Inputs& in) { return in["x"] * in["y"]; },
         {{"x", random({3, 5}, 1)}, {"y", random({5}, 2)}});
  passes([](const Inputs& in) { return exp(in["x"]) / (1 + exp(in["x"])); }, {{"x", random({3, 5})}});
  passes([](const Inputs& in) { return softmax(matmul(in["a"], in["b"])); },
         {{"a", random({3, 5}, 1)}, {"b", random({5, 7}, 2)}});
  passes(
      [](const Inputs& in) { return square_with_rule(in["x"], [](auto x, auto dy) { return 2 * x * dy; }); },
      {{"x", random({3, 5})}});
  // Elements so close to a kink, or so large, that one fixed step would fail.
  passes([](const Inputs& in) { return relu(in["x"]); }, {{"x", tensor({0.002, -0.001, 3e-5, 1}, f64)}});
  passes([](const Inputs& in) { return in["x"] * in["x"]; }, {{"x", tensor({1e4, -2e6, 1e-9}, f64)}});
  passes([](const Inputs& in) { return log(in["x"]); }, {{"x", tensor({0.003, 0.2, 100}, f64)}});
  passes([](const Inputs& in) { return in["x"] * scalar(3, f64); }, {{"x", scalar(2, f64)}});
}

TEST_CASE("gradcheck accepts functions of tensors, in order, and of one Inputs") {
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
  CHECK(report.tensors[0].worst.index == Shape{2, 3});
  CHECK(report.tensors[0].worst.relative == Approx(element.relative));
  CHECK(element.relative > 0.01);
  const std::string text = to_string(report);
  CHECK_THAT(text, ContainsSubstring("FAILED") && ContainsSubstring("(2, 3)") && ContainsSubstring("wrong"));
  CHECK_THAT(text, ContainsSubstring(fmt::format("{:.12g}", element.analytic)));
  CHECK_THAT(text, ContainsSubstring(fmt::format("{:.12g}", element.numeric)));
}

TEST_CASE("gradcheck finds a second derivative that is wrong where the first is right") {
  const auto second_order_only = [](auto rule) {
    CHECK(check_rule({3, 5}, rule).passed());
    GradcheckReport report = check_rule({3, 5}, rule, {.order = 2});
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
  // The recorded gradient is consistent with itself, but not with the one that training uses.
  second_order_only([](auto x, auto dy) { return recording() ? 2.002 * x * dy : 2 * x * dy; });
}

TEST_CASE("gradcheck fails a check that is vacuous") {
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
  CHECK_THAT(to_string(nothing), ContainsSubstring("no element was checked"));
  CHECK_FALSE(gradcheck([](const Inputs&) { return scalar(1, f64); }, Inputs({})).passed());
}

TEST_CASE("gradcheck accepts a gradient that is nothing but rounding where the function is constant") {
  // dy g - dy g with one product rounded and the other not, as a fused multiply-add computes it. As g is near
  // a power of 2, the result hardly changes when dy moves by a few roundings.
  constexpr double g = 1 + 0x1p-12;
  const auto constant = [](const Tensor& x) {
    return record("constant", zeros(x.shape(), f64), {x}, {},
                  [](auto&, const Tensor& dy, auto&) -> Gradients {
                    std::vector<double> rounding = dy.to_vector();
                    for (double& v : rounding) v = std::fma(v, g, -(v * g));
                    return {from_values(rounding, dy.shape(), f64)};
                  });
  };
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const GradcheckReport report =
        gradcheck(constant, random({3}), {.seed = seed, .compare_f32 = false, .expect_zero = {"x"}});
    INFO(to_string(report));
    CHECK(report.passed());
    CHECK(report.worst() > 0);
  }
  // A gradient that exceeds rounding is wrong, however small it is.
  const auto wrong = [](const Tensor& x) {
    return record("constant", zeros(x.shape(), f64), {x}, {},
                  [](auto&, const Tensor& dy, auto&) -> Gradients { return {1e-12 * dy}; });
  };
  check_all_wrong(gradcheck(wrong, random({3}), {.compare_f32 = false, .expect_zero = {"x"}}), 3);
}

TEST_CASE("gradcheck recognises a function that is nothing but rounding") {
  // The values of about 1e-16 do not tell that they are the rounding of 1 - 1.
  const auto one_less_one = [](const Tensor& x) { return exp(x) * exp(-x) - 1; };
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const GradcheckReport report = gradcheck(one_less_one, random({1}, seed),
                                             {.seed = seed, .compare_f32 = false, .expect_zero = {"x"}});
    INFO(to_string(report));
    CHECK(report.passed());
  }
  CHECK(gradcheck(one_less_one, random({3}), {.compare_f32 = false}).verdict() == "vacuous");
  // A gradient that exceeds the rounding of f is still wrong.
  const auto wrong = [&](const Tensor& x) {
    return record("wrong", one_less_one(x).detach(), {x}, {},
                  [](auto&, const Tensor& dy, auto&) -> Gradients { return {1e-11 * dy}; });
  };
  check_all_wrong(gradcheck(wrong, random({3}), {.compare_f32 = false}), 3);
  // A gradient of zero is wrong for a function that is as small but smooth.
  const auto small = [](const Tensor& x) {
    return record("small", 1e-16 * x.detach(), {x}, {},
                  [](auto&, const Tensor& dy, auto&) -> Gradients { return {0 * dy}; });
  };
  check_all_wrong(gradcheck(small, random({3}), {.compare_f32 = false, .expect_zero = {"x"}}), 3);
}

TEST_CASE("gradcheck recognises a gradient whose rounding exceeds what the first order measured") {
  // The gradient p - q sums to zero over the classes: where logits are equal, the sum is 0 or 1.6e-16. With
  // seed 373 the first order measures a quarter of that.
  const auto equal_logits = [](const Tensor& x) {
    const Indices targets{{1, 2, 2}, {0, 2, 1}};
    return cross_entropy(broadcast_to(x, {2, 3, 5}), targets,
                         {.ignore_index = 2, .reduction = Reduction::none})
        .loss;
  };
  const GradcheckReport report = gradcheck(
      equal_logits, random({2, 3, 1}), {.order = 2, .seed = 373, .compare_f32 = false, .expect_zero = {"x"}});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("gradcheck finds a rule that is not linear in its cotangent") {
  check_all_wrong(check_rule({3, 5}, [](auto x, auto dy) { return 2 * x * dy * abs(dy); }), 15);
  check_all_wrong(check_rule({3, 5}, [](auto x, auto dy) { return 2 * x * clamp(dy, -0.5, 0.5); }), 15);
}

TEST_CASE("gradcheck does not change the caller's tensors") {
  Rng rng(5);
  const Tensor x = randn({3, 5}, rng, f32);
  const std::vector<double> before = x.to_vector();
  CHECK(gradcheck([](const Tensor& v) { return v * v; }, x, {.order = 2}).passed());
  CHECK(x.to_vector() == before);
  CHECK(x.version() == 0);
  CHECK(x.dtype() == f32);
  CHECK_FALSE(x.requires_grad());
}

TEST_CASE("gradcheck_in_place moves tensors where they are, and restores them") {
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

  // A view with other strides can be moved in place as well.
  const Tensor transposed = transpose(random({5, 3}, 4));
  CHECK(gradcheck_in_place([&] { return x * transpose(slice(transposed, 1, 0, 2)); }, {{"t", transposed}})
            .passed());
}

TEST_CASE("gradcheck_in_place restores an element when the function throws") {
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

TEST_CASE("gradcheck throws for options out of range and names that do not exist") {
  const auto square = [](const Tensor& x) { return x * x; };
  CHECK_THROWS_WITH(gradcheck(square, random({3}), {.order = 3}), ContainsSubstring("[gradcheck] order 3"));
  CHECK_THROWS_WITH(gradcheck(square, random({3}), {.expect_zero = {"z"}}), ContainsSubstring("'z'"));
  const Tensor narrow = ones({3});
  CHECK_THROWS_AS(gradcheck_in_place([&] { return narrow * narrow; }, {{"x", narrow}}), DtypeError);
  const Inputs inputs{{"x", narrow}, {"y", narrow}};
  CHECK_THROWS_WITH(inputs["z"], ContainsSubstring("'z'") && ContainsSubstring("x, y"));
}

TEST_CASE("gradcheck checks every element of the Jacobian when asked to") {
  const NamedFunction f = [](const Inputs& in) { return softmax(matmul(in["x"], in["W"])); };
  const Inputs inputs{{"x", random({2, 3}, 1)}, {"W", random({3, 5}, 2)}};
  const GradcheckReport report = gradcheck(f, inputs, {.jacobian = true});
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.elements == 10 * (6 + 15));
  CHECK(report.tensors.size() == 2);
  CHECK(report.tensors[0].elements == 60);

  // A wrong element is named together with the output element.
  const auto wrong = [](const Tensor& x) {
    return record("copy", x.detach(), {x}, {},
                  [](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    return {dy * to(tensor({1, 1, 2}, f64), dy.dtype())};
                  });
  };
  const GradcheckReport found = gradcheck(wrong, random({3}), {.jacobian = true, .compare_f32 = false});
  REQUIRE(found.failures.size() == 1);
  CHECK(found.failures[0].output == Shape{2});
  CHECK_THAT(to_string(found), ContainsSubstring("(2,) of output (2,)"));
}

TEST_CASE("gradcheck screens large tensors along random directions, and reports that it did") {
  const Tensor x = random({19, 23}, 1), W = random({23, 101}, 2);
  const auto f = [](const Tensor& a, const Tensor& b) { return tanh(matmul(a, b)); };
  const GradcheckReport report =
      gradcheck(f, {{"x", x}, {"W", W}}, {.screen = Screen{.directions = 3, .elements = 5}});
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.screened);
  CHECK(report.elements == 2 * (3 + 5));
  CHECK_THAT(to_string(report), ContainsSubstring("screened along random directions: this is a sample"));

  const auto one_wrong = [](const Tensor& a) {
    return square_with_rule(a, [](const Tensor& v, const Tensor& dy) {
      std::vector<double> factor(static_cast<std::size_t>(v.numel()), 2);
      factor[137] = 2.1;
      return to(from_values(factor, v.shape(), f64), v.dtype()) * v * dy;
    });
  };
  const GradcheckReport found = gradcheck(one_wrong, x, {.screen = Screen{}, .compare_f32 = false});
  CHECK(found.failures.size() == 4);  // every direction passes through the wrong element
  CHECK_THAT(to_string(found), ContainsSubstring("direction"));
  CHECK_THROWS_AS(gradcheck(one_wrong, x, {.screen = Screen{.directions = 0}}), ValueError);
}

TEST_CASE("gradcheck does not check the elements that `exclude` names") {
  const auto frozen = [](const Tensor& table) {
    return record("frozen", (table * table).detach(), {table}, {table},
                  [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    const Tensor row = zeros({1, 5}, dy.dtype());
                    return {concat({row, slice(2 * saved[0] * dy, 0, 1, 3)}, 0)};
                  });
  };
  const Tensor table = random({3, 5});
  CHECK_FALSE(gradcheck(frozen, {{"table", table}}).passed());
  const GradcheckReport report = gradcheck(frozen, {{"table", table}}, {.exclude = {"table[0]"}});
  CHECK(report.passed());
  CHECK(report.elements == 10);
  CHECK(gradcheck(frozen, {{"table", table}}, {.exclude = {"table[0, 1]"}}).elements == 14);
  CHECK_FALSE(gradcheck(frozen, {{"table", table}}, {.exclude = {"table"}}).passed());  // no element is left
  for (const char* wrong : {"bench[0]", "table[3]", "table[0, 5]", "table[x]", "table[0, 0, 0]", "table[0"}) {
    INFO(wrong);
    CHECK_THROWS_WITH(gradcheck(frozen, {{"table", table}}, {.exclude = {wrong}}),
                      ContainsSubstring(std::string("exclude names '") + wrong));
  }
}

TEST_CASE("gradcheck compares f32 with f64, or reports why it cannot") {
  const auto drifts = [](const Tensor& x) {
    return square_with_rule(
        x, [](const Tensor& v, const Tensor& dy) { return (v.dtype() == f32 ? 2.0002 : 2) * v * dy; });
  };
  const GradcheckReport report = gradcheck(drifts, random({3, 5}));
  CHECK_FALSE(report.passed());
  REQUIRE(report.failures.size() > 5);
  CHECK(report.failures[0].verdict == Verdict::f32_drift);
  CHECK_THAT(to_string(report), ContainsSubstring("f32-drift"));
  CHECK(gradcheck(drifts, random({3, 5}), {.compare_f32 = false}).passed());
  CHECK(gradcheck(drifts, random({3, 5}), {.f32_roundings = 10000}).passed());

  const Tensor weight = random({3, 5}, 2);  // f64, whatever the dtype of the input
  const GradcheckReport fixed = gradcheck([&](const Tensor& x) { return x * weight; }, random({3, 5}));
  CHECK(fixed.passed());
  CHECK_THAT(fixed.f32, ContainsSubstring("f32") && ContainsSubstring("f64"));
  CHECK_THAT(to_string(fixed), ContainsSubstring("f32 was not compared"));
}

TEST_CASE("gradcheck does not check a tensor whose elements share memory, and reports why") {
  const Tensor repeated = broadcast_to(random({3, 1}), {3, 5});
  const auto square = [](const Tensor& x) { return x * x; };
  for (const GradcheckReport& report :
       {gradcheck(square, repeated),
        gradcheck_in_place([&] { return repeated * repeated; }, {{"x", repeated}})}) {
    CHECK_FALSE(report.passed());
    CHECK(report.elements == 0);
    CHECK_THAT(to_string(report), ContainsSubstring("aliased: 'x' (3, 5) repeats along axis 1") &&
                                      ContainsSubstring("check a clone"));
  }
  CHECK(gradcheck(square, clone(repeated)).passed());
}
