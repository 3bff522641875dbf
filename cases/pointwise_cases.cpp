#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "autograd/base/non_finite.h"
#include "cases/cases.h"

namespace fovea {
namespace {

void add_exp_and_log(Cases& cases) {
  cases.add("exp", [](Case& c) {
    c.input("x", {5, 7});
    c.value = [](const Inputs& in) { return exp(in["x"]); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return std::exp(x); }); };
    c.example({.name = "at -inf and 0",
               .inputs = {{"x", tensor({-infinity, 0}, f64)}},
               .value = {0, 1},
               .gradients = {{"x", {0, 1}}}});
  });
  cases.add("log", [](Case& c) {
    c.input("x", {5, 7}, positive);
    c.value = [](const Inputs& in) { return log(in["x"]); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return std::log(x); }); };
    c.example({.name = "at 0 with a cotangent of 0",
               .inputs = {{"x", tensor({0, 1}, f64)}},
               .value = {-infinity, 0},
               .cotangent = {0, 2},
               .gradients = {{"x", {0, 2}}}});
  });
}

void add_roots(Cases& cases) {
  cases.add("sqrt", [](Case& c) {
    c.input("x", {5, 7}, positive);
    c.value = [](const Inputs& in) { return sqrt(in["x"]); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return std::sqrt(x); }); };
    c.example({.name = "at 0",
               .inputs = {{"x", tensor({0, 4}, f64)}},
               .value = {0, 2},
               .cotangent = {3, 1},
               .gradients = {{"x", {0, 0.25}}}});
  });
  cases.add("rsqrt", [](Case& c) {
    c.input("x", {5, 7}, positive);
    c.value = [](const Inputs& in) { return rsqrt(in["x"]); };
    c.oracle = [](const Inputs& in) {
      return map_elements(in["x"], [](double x) { return 1 / std::sqrt(x); });
    };
  });
}

void add_abs_tanh_and_erf(Cases& cases) {
  cases.add("abs", [](Case& c) {
    c.input("x", {5, 7});
    c.value = [](const Inputs& in) { return abs(in["x"]); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return std::abs(x); }); };
    c.example({.name = "at 0",
               .inputs = {{"x", tensor({0, -2}, f64)}},
               .value = {0, 2},
               .cotangent = {3, 5},
               .gradients = {{"x", {0, -5}}}});
  });
  cases.add("tanh", [](Case& c) {
    c.input("x", {5, 7});
    c.value = [](const Inputs& in) { return tanh(in["x"]); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return std::tanh(x); }); };
    c.example({.name = "at large |x|",
               .inputs = {{"x", tensor({-1000, 1000}, f64)}},
               .value = {-1, 1},
               .gradients = {{"x", {0, 0}}}});
  });
  cases.add("erf", [](Case& c) {
    c.input("x", {5, 7});
    c.value = [](const Inputs& in) { return erf(in["x"]); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return std::erf(x); }); };
    c.example({.name = "at large |x|",
               .inputs = {{"x", tensor({-1000, 1000}, f64)}},
               .value = {-1, 1},
               .gradients = {{"x", {0, 0}}}});
  });
}

void add_powers(Cases& cases) {
  const auto power = [&](double p, Domain domain) {
    cases.add(fmt::format("pow, {}", p), [=](Case& c) {
      c.input("x", {5, 7}, domain);
      c.value = [=](const Inputs& in) { return pow(in["x"], p); };
      c.oracle = [=](const Inputs& in) {
        return map_elements(in["x"], [=](double x) { return std::pow(x, p); });
      };
    });
  };
  for (const double p : {1.0, 2.0, 3.0}) power(p, {});
  for (const double p : {-2.0, -0.5, 0.5, 2.5}) power(p, positive);
  power(-3, {-2.5, -0.5});

  cases.add("pow, 0", [](Case& c) {
    c.input("x", {5, 7});
    // x^0 has a gradient of zero everywhere, so it is multiplied by x to have something to check.
    c.value = [](const Inputs& in) { return pow(in["x"], 0) * in["x"]; };
    c.oracle = [](const Inputs& in) { return in["x"]; };
    c.example({.name = "x^0, x^1, x^2 and x^0.5 at 0",
               .inputs = {{"x", tensor({0.0}, f64)}},
               .value = {1, 0, 0, 0},
               .cotangent = {1, 2, 3, 0},
               .gradients = {{"x", {2}}},
               .of = [](const Inputs& in) {
                 const Tensor& x = in["x"];
                 return concat({pow(x, 0), pow(x, 1), pow(x, 2), pow(x, 0.5)}, 0);
               }});
  });
}

void add_powers_of_tensors(Cases& cases) {
  const auto power_of_tensors = [&](const std::string& name, const Shape& a, const Shape& b) {
    cases.add(name, [=](Case& c) {
      c.input("a", a, positive);
      c.input("b", b);
      c.value = [](const Inputs& in) { return pow(in["a"], in["b"]); };
      c.oracle = [](const Inputs& in) {
        return map_elements(in["a"], in["b"], [](double x, double y) { return std::pow(x, y); });
      };
      c.example({.name = "0^2, 0^1, 0^0 and 2^3",
                 .inputs = {{"a", tensor({0, 0, 0, 2}, f64)}, {"b", tensor({2, 1, 0, 3}, f64)}},
                 .value = {0, 0, 1, 8},
                 .gradients = {{"a", {0, 1, 0, 12}}, {"b", {0, 0, 0, 8 * std::log(2.0)}}}});
      c.refuses<ShapeError>("shapes that do not broadcast", "[pow]", [](const Inputs&) {
        return pow(ones({3, 5}), ones({3, 7}));
      });
    });
  };
  power_of_tensors("pow, of tensors", {3, 5}, {3, 5});
  power_of_tensors("pow, of tensors, both broadcast", {3, 1}, {2, 1, 5});
}

}  // namespace

void add_pointwise_cases(Cases& cases) {
  add_exp_and_log(cases);
  add_roots(cases);
  add_abs_tanh_and_erf(cases);
  add_powers(cases);
  add_powers_of_tensors(cases);
}

}  // namespace fovea
