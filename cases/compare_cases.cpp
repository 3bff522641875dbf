#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autograd/base/non_finite.h"
#include "cases/cases.h"

namespace fovea {
namespace {

template <class Compare>
void compare_tensors(Case& c, Compare compare) {
  c.input("a", {3, 1, 5});
  c.input("b", {2, 1});
  // The product gives both inputs some influence, whatever the comparison gives.
  c.value = [=](const Inputs& in) {
    const Tensor &a = in["a"], &b = in["b"];
    return where(compare(a, b), a, b) + a * b;
  };
  c.oracle = [=](const Inputs& in) {
    return map_elements(in["a"], in["b"],
                        [=](double a, double b) { return (compare(a, b) ? a : b) + a * b; });
  };
  // Comparisons differ for equal numbers and for NaN, which equals nothing.
  std::vector<double> truth;
  for (const auto& [a, b] :
       {std::pair{1.0, 1.0}, {1.0, 2.0}, {2.0, 1.0}, {nan, 1.0}, {1.0, nan}, {-0.0, 0.0}}) {
    truth.push_back(compare(a, b) ? 1 : 0);
  }
  c.example(
      {.name = "equal numbers and NaN",
       .inputs = {{"a", tensor({1, 1, 2, nan, 1, -0.0}, f64)}, {"b", tensor({1, 2, 1, 1, nan, 0}, f64)}},
       .value = truth,
       .of = [=](const Inputs& in) {
         const Tensor one = ones({}, in["a"].dtype());
         return where(compare(in["a"], in["b"]), one, 0.0);
       }});
  c.refuses<ShapeError>("shapes that do not broadcast", "do not broadcast", [=](const Inputs&) {
    compare(ones({3, 5}), ones({3, 7}));
  });
}

template <class Compare>
void compare_with_number(Case& c, Compare compare) {
  c.input("x", {3, 5});
  c.value = [=](const Inputs& in) { return where(compare(in["x"], 0.25), in["x"], 3 * in["x"]); };
  c.oracle = [=](const Inputs& in) {
    return map_elements(in["x"], [=](double x) { return compare(x, 0.25) ? x : 3 * x; });
  };
  c.example({.name = "equal numbers",
             .inputs = {{"x", tensor({0.25}, f64)}},
             .value = {compare(0.25, 0.25) ? 0.25 : 0.75},
             .gradients = {{"x", {compare(0.25, 0.25) ? 1.0 : 3.0}}}});
}

// x rotated by one place along its last axis. In a row of different numbers some number is then compared with
// a smaller one, and some with a larger one.
Tensor next_along_row(const Tensor& x) {
  const std::int64_t n = x.size(-1), first = std::min<std::int64_t>(1, n);
  return concat({slice(x, -1, first, n), slice(x, -1, 0, first)}, -1);
}

void add_comparisons(Cases& cases) {
  const auto comparison = [&](const std::string& symbol, auto compare) {
    cases.add("operator" + symbol, [&](Case& c) { compare_tensors(c, compare); });
    cases.add("operator" + symbol + " with a number", [&](Case& c) { compare_with_number(c, compare); });
  };
  comparison("<", [](const auto& a, const auto& b) { return a < b; });
  comparison("<=", [](const auto& a, const auto& b) { return a <= b; });
  comparison(">", [](const auto& a, const auto& b) { return a > b; });
  comparison(">=", [](const auto& a, const auto& b) { return a >= b; });
  comparison("==", [](const auto& a, const auto& b) { return a == b; });
  comparison("!=", [](const auto& a, const auto& b) { return a != b; });
  cases.add("is_finite", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) { return where(is_finite(in["x"]), in["x"], -1.0); };
    c.oracle = [](const Inputs& in) { return in["x"]; };
    c.example({.name = "infinity and NaN",
               .inputs = {{"x", tensor({1, infinity, -infinity, nan}, f64)}},
               .value = {1, -1, -1, -1},
               .gradients = {{"x", {1, 0, 0, 0}}}});
  });
}

void add_where_of_tensors(Cases& cases) {
  cases.add("where", [](Case& c) {
    c.input("x", {2, 1, 3});
    c.input("a", {5, 1});
    c.input("b", {2, 5, 3});
    c.value = [](const Inputs& in) {
      return where(in["x"] > next_along_row(in["x"]), in["a"], in["b"]) * in["x"];
    };
    c.oracle = [](const Inputs& in) {
      const Tensor falls = map_elements(in["x"], next_along_row(in["x"]),
                                        [](double x, double next) { return x > next ? 1 : 0; });
      return (falls * in["a"] + (1 - falls) * in["b"]) * in["x"];
    };
    for (const double x : {100.0, 1000.0}) {
      c.example({.name = "the branch not taken overflows",
                 .inputs = {{"x", tensor({x}, f64)}},
                 .value = {1 + x},
                 .gradients = {{"x", {1}}},
                 .of = [](const Inputs& in) { return where(in["x"] <= 0.0, exp(in["x"]), 1 + in["x"]); }});
    }
    c.example({.name = "NaN in the branch not taken",
               .inputs = {{"a", tensor({nan, 1}, f64)}, {"b", tensor({2, nan}, f64)}},
               .value = {2, 1},
               .cotangent = {3, 5},
               .gradients = {{"a", {0, 5}}, {"b", {3, 0}}},
               .of = [](const Inputs& in) {
                 return where(Bool{false, true}, in["a"], in["b"]);
               }});
    c.refuses<ShapeError>("a condition that does not broadcast", "[where]", [](const Inputs&) {
      return where(Bool{true, false}, ones({3}), ones({3}));
    });
  });
}

void add_where_with_number(Cases& cases) {
  cases.add("where, a number on either side", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) {
      return where(in["x"] > 0.5, in["x"], 3.0) * where(in["x"] > -0.5, 2.0, in["x"]);
    };
    c.oracle = [](const Inputs& in) {
      return map_elements(in["x"], [](double x) { return (x > 0.5 ? x : 3) * (x > -0.5 ? 2 : x); });
    };
  });
}

void add_extrema(Cases& cases) {
  const auto extremum = [&](const std::string& name, Tensor (*op)(const Tensor&, const Tensor&),
                            double (*formula)(double, double)) {
    cases.add(name, [=](Case& c) {
      c.input("a", {3, 1, 5});
      c.input("b", {2, 1}, {-0.5, 0.5});  // so that some of the 15 elements of a lie above, and some below
      c.value = [=](const Inputs& in) { return op(in["a"], in["b"]); };
      c.oracle = [=](const Inputs& in) { return map_elements(in["a"], in["b"], formula); };
      c.example({.name = "ties share equally",
                 .inputs = {{"a", tensor({1, 2}, f64)}, {"b", tensor({1, 2}, f64)}},
                 .value = {1, 2},
                 .cotangent = {3, 5},
                 .gradients = {{"a", {1.5, 2.5}}, {"b", {1.5, 2.5}}}});
      c.example({.name = "NaN is propagated",
                 .inputs = {{"a", tensor({nan, 1}, f64)}, {"b", tensor({1, nan}, f64)}},
                 .value = {nan, nan}});
      c.refuses<ShapeError>("shapes that do not broadcast", fmt::format("[{}]", name), [=](const Inputs&) {
        return op(ones({3, 5}), ones({3, 7}));
      });
    });
  };
  extremum("maximum", maximum, [](double a, double b) { return std::max(a, b); });
  extremum("minimum", minimum, [](double a, double b) { return std::min(a, b); });
}

void add_clamp(Cases& cases) {
  cases.add("clamp", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) { return clamp(in["x"], -0.75, 1.25); };
    c.oracle = [](const Inputs& in) {
      return map_elements(in["x"], [](double x) { return std::clamp(x, -0.75, 1.25); });
    };
    c.example({.name = "at and outside its bounds",
               .inputs = {{"x", tensor({-1, -0.75, 0, 1.25, 2, nan}, f64)}},
               .value = {-0.75, -0.75, 0, 1.25, 1.25, nan},
               .cotangent = {2, 3, 5, 7, 11, 0},
               .gradients = {{"x", {0, 3, 5, 7, 0, 0}}}});
    c.refuses<ValueError>("bounds in the wrong order", "[clamp]",
                          [](const Inputs& in) { return clamp(in["x"], 1, 0); });
    c.refuses<ValueError>("a bound that is NaN", "[clamp]",
                          [](const Inputs& in) { return clamp(in["x"], nan, 0); });
  });
}

}  // namespace

void add_compare_cases(Cases& cases) {
  add_comparisons(cases);
  add_where_of_tensors(cases);
  add_where_with_number(cases);
  add_extrema(cases);
  add_clamp(cases);
}

}  // namespace fovea
