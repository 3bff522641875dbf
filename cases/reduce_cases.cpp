#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "autograd/base/non_finite.h"
#include "autograd/ops/reference.h"
#include "cases/cases.h"

namespace fovea {
namespace {

using Fold = double (*)(const std::vector<double>&);

double add_up(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}
double average(const std::vector<double>& values) {
  return add_up(values) / static_cast<double>(values.size());
}
double largest(const std::vector<double>& values) { return *std::ranges::max_element(values); }
double log_of_exps(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += std::exp(value);
  return std::log(total);
}

// Applies `fold` to the elements along the axes that are true in `reduced`, for x with three axes.
Tensor fold_axes(const Tensor& x, const std::vector<bool>& reduced, bool keep, Fold fold) {
  Shape kept;
  for (std::size_t axis = 0; axis < 3; ++axis) kept.push_back(reduced[axis] ? 1 : x.shape()[axis]);
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(numel(kept)));
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    for (std::int64_t j = 0; j < x.size(1); ++j) {
      for (std::int64_t k = 0; k < x.size(2); ++k) {
        const std::int64_t row = (reduced[0] ? 0 : i) * kept[1] + (reduced[1] ? 0 : j);
        groups[static_cast<std::size_t>(row * kept[2] + (reduced[2] ? 0 : k))].push_back(x.at({i, j, k}));
      }
    }
  }
  std::vector<double> values;
  values.reserve(groups.size());
  for (const std::vector<double>& group : groups) values.push_back(fold(group));
  Shape shape;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (keep || !reduced[axis]) shape.push_back(kept[axis]);
  }
  return from_values(values, shape, f64);
}

// Two sums so long that they are computed in chunks, of small integers, whose sum f32 represents exactly. The
// numbers of each sum lie one after the other, or the two sums alternate.
Example several_chunks(bool side_by_side) {
  constexpr std::int64_t n = 200'003;
  std::vector<double> x, gradient, sums(2, 0);
  for (std::int64_t i = 0; i < 2 * n; ++i) {
    const std::size_t result = side_by_side ? static_cast<std::size_t>(i % 2) : i < n ? 0 : 1;
    x.push_back(static_cast<double>(i % 7 - 2));
    sums[result] += x.back();
    gradient.push_back(result == 0 ? 3 : 5);
  }
  return {.name = side_by_side ? "several chunks, alternating" : "several chunks",
          .inputs = {{"x", from_values(x, side_by_side ? Shape{n, 2} : Shape{2, n}, f64)}},
          .value = sums,
          .cotangent = {3, 5},
          .gradients = {{"x", gradient}},
          .of = [=](const Inputs& in) { return sum(in["x"], side_by_side ? 0 : 1); }};
}

using Reduce = Tensor (*)(const Tensor&, const Axes&, bool);

// Rows for a reduction over several choices of axes of (2, 3, 5). `needs_elements`: reducing no elements is
// an error.
void add_reduction(Cases& cases, const std::string& name, Reduce op, Reduce reference_form, Fold fold,
                   bool needs_elements) {
  const auto row = [&](const std::string& which, const Axes& axes, const std::vector<bool>& reduced,
                       bool keep) {
    cases.add(name + ", " + which, [&](Case& c) {
      c.input("x", {2, 3, 5});
      c.value = [=](const Inputs& in) { return op(in["x"], axes, keep); };
      c.oracle = [=](const Inputs& in) { return fold_axes(in["x"], reduced, keep, fold); };
      if (reference_form) c.reference = [=](const Inputs& in) { return reference_form(in["x"], axes, keep); };
      const std::vector<std::int64_t> sizes{2, 3, 5};
      for (std::size_t axis = 0; needs_elements && axis < 3; ++axis) {
        if (reduced[axis]) c.not_empty.push_back(sizes[axis]);
      }
      c.refuses<ShapeError>("an axis out of range", fmt::format("[{}] axis 3", name),
                            [=](const Inputs& in) { return op(in["x"], 3, false); });
      c.refuses<ShapeError>("an axis named twice", fmt::format("[{}]", name), [=](const Inputs& in) {
        return op(in["x"], {1, -2}, false);
      });
      if (!needs_elements) return;
      c.refuses<ShapeError>("no elements to reduce", fmt::format("[{}]", name), [=](const Inputs&) {
        return op(zeros({3, 0}, f64), 1, false);
      });
    });
  };
  row("the last axis", -1, {false, false, true}, false);
  row("the first axis, kept", 0, {true, false, false}, keepdims);
  row("the middle axis", 1, {false, true, false}, false);
  row("two axes apart", {2, 0}, {true, false, true}, false);
  row("two axes apart, kept", {0, -1}, {true, false, true}, keepdims);
  row("all axes", {0, 1, 2}, {true, true, true}, false);
}

void add_reductions(Cases& cases) {
  add_reduction(cases, "sum", sum, nullptr, add_up, false);
  add_reduction(cases, "mean", mean, nullptr, average, true);
  add_reduction(cases, "max", max, nullptr, largest, true);
  add_reduction(cases, "logsumexp", logsumexp, reference::logsumexp, log_of_exps, false);
}

void add_sum_and_mean(Cases& cases) {
  cases.add("sum, all elements", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.value = [](const Inputs& in) { return sum(in["x"]); };
    c.oracle = [](const Inputs& in) { return scalar(add_up(in["x"].to_vector()), f64); };
    c.example(several_chunks(false));
    c.example(several_chunks(true));
  });
  cases.add("mean, all elements", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.not_empty = {2, 3, 5};
    c.value = [](const Inputs& in) { return mean(in["x"]); };
    c.oracle = [](const Inputs& in) { return scalar(average(in["x"].to_vector()), f64); };
    c.refuses<ShapeError>("no elements to average", "[mean]", [](const Inputs&) {
      return mean(zeros({3, 0}));
    });
  });
}

void add_max(Cases& cases) {
  cases.add("max, all elements", [](Case& c) {
    c.input("x", {2, 3, 5});
    c.not_empty = {2, 3, 5};
    c.value = [](const Inputs& in) { return max(in["x"]); };
    c.oracle = [](const Inputs& in) { return scalar(largest(in["x"].to_vector()), f64); };
    c.example({.name = "ties share equally",
               .inputs = {{"x", tensor({1, 3, 3, 2, 3}, f64)}},
               .value = {3},
               .cotangent = {6},
               .gradients = {{"x", {0, 2, 2, 0, 2}}}});
    c.example({.name = "NaN is propagated", .inputs = {{"x", tensor({1, nan, 3}, f64)}}, .value = {nan}});
    c.example({.name = "every element is -inf",
               .inputs = {{"x", tensor({-infinity, -infinity}, f64)}},
               .value = {-infinity},
               .gradients = {{"x", {0.5, 0.5}}}});
    c.refuses<ShapeError>("no elements to compare", "[max]", [](const Inputs&) {
      return max(zeros({3, 0}));
    });
  });
}

void add_logsumexp(Cases& cases) {
  cases.add("logsumexp, examples", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) { return logsumexp(in["x"], -1); };
    c.oracle = [](const Inputs& in) { return log(sum(exp(in["x"]), -1)); };
    c.f32_roundings = 1000;  // the value is rounded at 1000, and the gradient comes from it
    c.example({.name = "large numbers",
               .inputs = {{"x", tensor({{1000, 1000}, {-1000, -1000}}, f64)}},
               .value = {1000 + std::log(2.0), -1000 + std::log(2.0)},
               .gradients = {{"x", {0.5, 0.5, 0.5, 0.5}}}});
    c.example({.name = "every element of a row is -inf",
               .inputs = {{"x", tensor({{-infinity, -infinity}, {0, -infinity}}, f64)}},
               .value = {-infinity, 0},
               .cotangent = {3, 5},
               .gradients = {{"x", {0, 0, 5, 0}}}});
  });
}

void add_argmax(Cases& cases) {
  cases.add("argmax", [](Case& c) {
    c.input("x", {3, 5});
    c.not_empty = {5};
    c.differentiable = false;
    c.value = [](const Inputs& in) {
      const Indices positions = argmax(in["x"]);
      const std::vector<double> values(positions.values().begin(), positions.values().end());
      return from_values(values, positions.shape(), in["x"].dtype());
    };
    c.oracle = [](const Inputs& in) {
      std::vector<double> values;
      const std::vector<double> x = in["x"].to_vector();
      const std::int64_t n = in["x"].size(1);
      for (auto row = x.begin(); row != x.end(); row += n) {
        values.push_back(static_cast<double>(std::max_element(row, row + n) - row));
      }
      return from_values(values, {in["x"].size(0)}, f64);
    };
    c.example({.name = "the first of equal elements",
               .inputs = {{"x", tensor({{1, 3, 3}, {-infinity, -infinity, -infinity}}, f64)}},
               .value = {1, 0}});
    c.refuses<ShapeError>("no elements to compare", "[argmax]", [](const Inputs&) { argmax(zeros({3, 0})); });
    c.refuses<ShapeError>("an axis out of range", "[argmax] axis 2",
                          [](const Inputs& in) { argmax(in["x"], 2); });
  });
}

}  // namespace

void add_reduce_cases(Cases& cases) {
  add_reductions(cases);
  add_sum_and_mean(cases);
  add_max(cases);
  add_logsumexp(cases);
  add_argmax(cases);
}

}  // namespace fovea
