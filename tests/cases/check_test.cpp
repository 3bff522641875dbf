#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/ops/reference.h"
#include "cases/cases.h"
#include "fovea/autograd/graph/graph.h"
#include "tests/support/catch.h"

// The checks that `check` makes of every row, tested with rows that are wrong on purpose.

using namespace fovea;

namespace {

// A correct row for x^2, which the tests break in one place each.
Case square() {
  Case c;
  c.name = "square";
  c.input("x", {3, 5});
  c.value = [](const Inputs& in) { return in["x"] * in["x"]; };
  c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return x * x; }); };
  return c;
}

// A row for x^2 that is recorded with the given rule: (x, dy) -> gradient.
template <class Rule>
Case square_by_rule(Rule rule) {
  Case c = square();
  c.value = [=](const Inputs& in) {
    const Tensor& x = in["x"];
    return record("square", (x * x).detach(), {x}, {x},
                  [=](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    return {rule(saved[0], dy)};
                  });
  };
  return c;
}

Case product() {
  Case c = square();
  c.input("y", {3, 5});
  c.value = [](const Inputs& in) { return in["x"] * in["y"]; };
  c.oracle = [](const Inputs& in) { return map_elements(in["x"], in["y"], std::multiplies<>()); };
  return c;
}

std::string failures(const Case& c) {
  const CaseReport report = check(c);
  CHECK(report.passed() == report.failures.empty());
  std::string text;
  for (const std::string& failure : report.failures) text += failure + "\n";
  return text;
}

}  // namespace

TEST_CASE("the case table passes correct rows") {
  CHECK(failures(square()).empty());
  CHECK(failures(product()).empty());
  CHECK(failures(square_by_rule([](auto x, auto dy) { return 2 * x * dy; })).empty());
  CHECK(check(square()).elements > 200);
  CHECK(check(square(), {.order = 1}).elements < check(square()).elements / 2);
  CHECK(check(square()).verdict == "pass");
  CHECK(check(square(), {.seed = 2}).passed());
}

TEST_CASE("the case table finds a wrong value, also in one dtype or layout only") {
  Case c = square();
  c.value = [](const Inputs& in) { return 1.000001 * in["x"] * in["x"]; };
  CHECK_THAT(failures(c), ContainsSubstring("contiguous: f64 value") && !ContainsSubstring("f32 value"));
  c.value = [](const Inputs& in) { return (in["x"].dtype() == f32 ? 1.00001 : 1) * in["x"] * in["x"]; };
  CHECK_THAT(failures(c), ContainsSubstring("f32 value") && !ContainsSubstring("f64 value"));
  c.value = [](const Inputs& in) { return in["x"] * in["x"] * (in["x"].is_contiguous() ? 1 : 2); };
  CHECK_THAT(failures(c), !ContainsSubstring("contiguous: f64 value") &&
                              ContainsSubstring("transposed: f64 value") &&
                              ContainsSubstring("sliced: f64 value") &&
                              ContainsSubstring("broadcast along the last axis: f64 value"));
  c.value = [](const Inputs& in) { return to(in["x"] * in["x"], f64); };
  CHECK_THAT(failures(c), ContainsSubstring("not f32"));
}

TEST_CASE("the case table finds a wrong rule, also in one dtype, layout or order only") {
  CHECK_THAT(failures(square_by_rule([](auto x, auto dy) { return 2.002 * x * dy; })),
             ContainsSubstring("contiguous: derivatives") && ContainsSubstring("wrong"));
  CHECK_THAT(
      failures(square_by_rule([](auto x, auto dy) { return (x.dtype() == f32 ? 2.0002 : 2) * x * dy; })),
      ContainsSubstring("contiguous: f32 gradient of x") && !ContainsSubstring("derivatives"));
  CHECK_THAT(
      failures(square_by_rule([](auto x, auto dy) { return (x.is_contiguous() ? 2 : 2.002) * x * dy; })),
      !ContainsSubstring("contiguous: derivatives") && ContainsSubstring("transposed: derivatives"));
  CHECK_THAT(failures(square_by_rule([](auto x, auto dy) { return 2 * x.detach() * dy; })),
             ContainsSubstring("contiguous: derivatives"));
  CHECK_THAT(failures(square_by_rule([](auto x, auto dy) { return (recording() ? 2.002 : 2) * x * dy; })),
             ContainsSubstring("under create_graph"));
}

TEST_CASE("the case table reports the verdict of the first failure") {
  const auto verdict = [](auto rule) { return check(square_by_rule(rule)).verdict; };
  CHECK(verdict([](auto x, auto dy) { return 2.002 * x * dy; }) == "wrong");
  CHECK(verdict([](auto x, auto dy) { return (x.dtype() == f32 ? 2.0002 : 2) * x * dy; }) == "f32-drift");
  CHECK(verdict([](auto x, auto dy) { return x * dy / 0.0; }) == "non-finite");
}

TEST_CASE("the case table finds an op that breaks on short and empty axes") {
  Case c = square();
  c.value = [](const Inputs& in) {
    if (in["x"].size(1) == 1) throw Error("[square] one");
    return in["x"] * in["x"];
  };
  CHECK_THAT(failures(c), ContainsSubstring("the axis of size 5 made 1: it threw [square] one") &&
                              !ContainsSubstring("size 3"));
  c.value = [](const Inputs& in) {
    if (in["x"].numel() == 0) throw Error("[square] none");
    return in["x"] * in["x"];
  };
  CHECK_THAT(failures(c), ContainsSubstring("size 5 made 0") && ContainsSubstring("size 3 made 0"));
  c.not_empty = {5};
  CHECK_THAT(failures(c), !ContainsSubstring("size 5 made 0") && ContainsSubstring("size 3 made 0"));
  c.fixed_sizes = {3};
  CHECK(failures(c).empty());
}

TEST_CASE("the case table finds a rule whose gradient depends on which other inputs need one") {
  Case c = product();
  c.value = [](const Inputs& in) {
    const Tensor &x = in["x"], &y = in["y"];
    return record("product", (x * y).detach(), {x, y}, {x, y},
                  [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                    return {dy * saved[1] * (needs[1] ? 1.0 : 2.0), dy * saved[0]};
                  });
  };
  CHECK_THAT(failures(c), ContainsSubstring("one input at a time: f64 x"));
}

TEST_CASE("the case table finds a rule that captures a tensor instead of saving it") {
  Case c = square();
  c.value = [](const Inputs& in) {
    const Tensor& x = in["x"];
    return record("square", (x * x).detach(), {x}, {},
                  [v = x.detach()](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    return {2 * v * dy};
                  });
  };
  CHECK_THAT(failures(c), ContainsSubstring("an input changed after its use"));
}

TEST_CASE("the case table finds an op that writes into its input") {
  Case c = square();
  c.value = [](const Inputs& in) {
    Tensor shared = in["x"].detach();
    if (shared.dtype() == f64 && shared.numel() > 0) shared.mutable_data<double>();
    return in["x"] * in["x"];
  };
  CHECK_THAT(failures(c), ContainsSubstring("inputs: input x was written to"));
}

TEST_CASE("the case table finds an op whose graph keeps itself alive") {
  std::vector<std::shared_ptr<Tensor>> circles;
  Case c = square();
  c.value = [&](const Inputs& in) {
    // The rule owns a tensor that owns the rule, so neither is ever freed.
    const Tensor& x = in["x"];
    const auto own = std::make_shared<Tensor>();
    *own = record("square", (x * x).detach(), {x}, {x},
                  [own](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    return {2 * saved[0] * dy};
                  });
    circles.push_back(own);
    return *own;
  };
  CHECK_THAT(failures(c), ContainsSubstring("memory:") && ContainsSubstring("still live"));
  for (const auto& own : circles) *own = Tensor();
}

TEST_CASE("the case table finds an op that lets dtypes mix") {
  Case c = product();
  c.value = [](const Inputs& in) { return in["x"] * to(in["y"], in["x"].dtype()); };
  CHECK_THAT(failures(c),
             ContainsSubstring("dtypes: x is f32 and the others are f64") && ContainsSubstring("y is f32"));
}

TEST_CASE("the case table finds a reference form that differs, and kernels that run on the wrong side") {
  Case c = square();
  c.reference = [](const Inputs& in) { return in["x"] * in["x"] * 1.0001; };
  CHECK_THAT(failures(c), ContainsSubstring("reference form: f32 value") &&
                              ContainsSubstring("reference form: f64 gradient of x"));

  c.value = c.reference = [](const Inputs& in) { return softmax(in["x"]); };
  c.oracle = [](const Inputs& in) { return softmax(in["x"]); };
  c.kernel = "softmax";
  CHECK_THAT(failures(c), ContainsSubstring("the fused kernel ran in the reference form"));
  c.reference = [](const Inputs& in) { return reference::softmax(in["x"]); };
  CHECK(failures(c).empty());
  c.kernel = "layer_norm";
  CHECK_THAT(failures(c), ContainsSubstring("the fused kernel did not run"));
  c.kernel = "softmax";
  c.backward_kernel = "layer_norm_backward";
  CHECK_THAT(failures(c), ContainsSubstring("the fused kernel of the gradient did not run"));
}

TEST_CASE("the case table checks the values and gradients of examples") {
  const auto with = [](Example example) {
    Case c = square();
    example.name = "at 3";
    example.inputs = {{"x", tensor({3.0}, f64)}};
    c.example(example);
    return failures(c);
  };
  CHECK(with({.value = {9}, .cotangent = {2}, .gradients = {{"x", {12}}}}).empty());
  CHECK_THAT(with({.value = {9.001}}),
             ContainsSubstring("at 3: f64 value") && ContainsSubstring("at 3: f32 value"));
  CHECK_THAT(with({.value = {9}, .gradients = {{"x", {6.001}}}}),
             ContainsSubstring("at 3: f64 gradient of x"));
  CHECK_THAT(with({.value = {9}, .of = [](const Inputs& in) { return pow(in["x"] - 3, 0.5) + 9; }}),
             ContainsSubstring("at 3: the gradient of x is not finite"));
}

TEST_CASE("the case table checks that calls which must throw throw the right error") {
  const auto with = [](const std::string& text, auto call) {
    Case c = square();
    c.refuses<ShapeError>("nonsense", text, call);
    return failures(c);
  };
  const auto call = [](const Inputs& in) { return in["x"] + ones({7}, f64); };
  CHECK(with("[add]", call).empty());
  CHECK_THAT(with("[mul]", call), ContainsSubstring("nonsense: the error should start"));
  CHECK_THAT(with("[", [](const Inputs& in) { return in["x"]; }),
             ContainsSubstring("nonsense: nothing was thrown"));
  CHECK_THAT(with("[", [](const Inputs&) { throw ValueError("[x] no"); }),
             ContainsSubstring("the wrong kind of error"));
  CHECK_THAT(with("no", [](const Inputs&) { throw ShapeError("no brackets"); }),
             ContainsSubstring("should start"));
}
