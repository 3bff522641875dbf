#include <fmt/format.h>

#include <functional>

#include "cases/cases.h"

namespace fovea {

namespace {

void add_binary(Cases& cases) {
  const auto binary = [&](const std::string& name, Tensor (*op)(const Tensor&, const Tensor&),
                          const std::function<double(double, double)>& formula, Domain of_b) {
    const auto row = [&](const Shape& a, const Shape& b) {
      return [=](Case& c) {
        c.input("a", a);
        c.input("b", b, of_b);
        c.value = [=](const Inputs& in) { return op(in["a"], in["b"]); };
        c.oracle = [=](const Inputs& in) { return map_elements(in["a"], in["b"], formula); };
        c.refuses<ShapeError>("shapes that do not broadcast", fmt::format("[{}]", name), [=](const Inputs&) {
          return op(zeros({3, 5}), zeros({3, 7}));
        });
      };
    };
    cases.add(name, row({5, 7}, {5, 7}));
    cases.add(name + ", both broadcast", row({3, 1, 5}, {2, 1}));
    cases.add(name + ", with a scalar", row({3, 5}, {}));
    cases.add(name + ", more axes on the right", row({5}, {2, 3, 5}));
  };
  binary("add", add, std::plus<>(), {});
  binary("sub", sub, std::minus<>(), {});
  binary("mul", mul, std::multiplies<>(), {});
  binary("div", div, std::divides<>(), {0.5, 2.5});
}

void add_special_binary(Cases& cases) {
  cases.add("div, by negative numbers", [](Case& c) {
    c.input("a", {3, 5});
    c.input("b", {3, 5}, {-2.5, -0.5});
    c.value = [](const Inputs& in) { return in["a"] / in["b"]; };
    c.oracle = [](const Inputs& in) { return map_elements(in["a"], in["b"], std::divides<>()); };
  });
  cases.add("mul, of a tensor with itself", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) { return in["x"] * in["x"]; };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return x * x; }); };
    c.example({.name = "x x + x x + x x at 1",
               .inputs = {{"x", tensor({1.0}, f64)}},
               .value = {3},
               .gradients = {{"x", {6}}},
               .of = [](const Inputs& in) {
                 const Tensor& x = in["x"];
                 return x * x + x * x + x * x;
               }});
  });
}

// Ops of one tensor, or of a tensor and a number.
void add_unary(Cases& cases) {
  const auto unary = [&](const std::string& name, Tensor (*op)(const Tensor&), double (*formula)(double),
                         Domain domain = {}) {
    cases.add(name, [=](Case& c) {
      c.input("x", {3, 5}, domain);
      c.value = [=](const Inputs& in) { return op(in["x"]); };
      c.oracle = [=](const Inputs& in) { return map_elements(in["x"], formula); };
    });
  };
  unary("neg", neg, [](double x) { return -x; });
  unary(
      "affine", [](const Tensor& x) { return affine(x, -1.5, 0.25); },
      [](double x) { return 0.25 - 1.5 * x; });
  unary(
      "affine, factor 1", [](const Tensor& x) { return affine(x, 1, 3); }, [](double x) { return x + 3; });
  unary(
      "operator+ of x and a number", [](const Tensor& x) { return x + 2; }, [](double x) { return x + 2; });
  unary(
      "operator+ of a number and x", [](const Tensor& x) { return 2 + x; }, [](double x) { return 2 + x; });
  unary(
      "operator- of x and a number", [](const Tensor& x) { return x - 2; }, [](double x) { return x - 2; });
  unary(
      "operator- of a number and x", [](const Tensor& x) { return 2 - x; }, [](double x) { return 2 - x; });
  unary(
      "operator- of x", [](const Tensor& x) { return -x; }, [](double x) { return -x; });
  unary(
      "operator* of x and a number", [](const Tensor& x) { return x * 3; }, [](double x) { return x * 3; });
  unary(
      "operator* of a number and x", [](const Tensor& x) { return 3 * x; }, [](double x) { return 3 * x; });
  unary(
      "operator/ of x and a number", [](const Tensor& x) { return x / 3; }, [](double x) { return x / 3; });
  unary(
      "operator/ of a number and x", [](const Tensor& x) { return 3 / x; }, [](double x) { return 3 / x; },
      positive);
}

}  // namespace

void add_arithmetic_cases(Cases& cases) {
  add_binary(cases);
  add_special_binary(cases);
  add_unary(cases);
}

}  // namespace fovea
