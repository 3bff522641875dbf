#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "autograd/base/non_finite.h"
#include "autograd/ops/reference.h"
#include "cases/cases.h"

namespace fovea {
namespace {

void add_rows_along_axes(Cases& cases) {
  for (const std::int64_t axis : {-1, 1, 0}) {
    cases.add(fmt::format("softmax, axis {}", axis), [axis](Case& c) {
      c.input("x", {3, 5, 7});
      c.value = [=](const Inputs& in) { return softmax(in["x"], axis); };
      c.oracle = [=](const Inputs& in) {
        const Tensor e = exp(in["x"]);
        return e / sum(e, axis, keepdims);
      };
      c.reference = [=](const Inputs& in) { return reference::softmax(in["x"], axis); };
      c.kernel = "softmax";
      c.backward_kernel = "softmax_backward";
      c.refuses<ShapeError>("an axis out of range", "[softmax] axis 3",
                            [](const Inputs& in) { return softmax(in["x"], 3); });
      c.refuses<ShapeError>("a scalar", "[softmax]", [](const Inputs&) { return softmax(scalar(1)); });
    });
    cases.add(fmt::format("log_softmax, axis {}", axis), [axis](Case& c) {
      c.input("x", {3, 5, 7});
      c.value = [=](const Inputs& in) { return log_softmax(in["x"], axis); };
      c.oracle = [=](const Inputs& in) { return in["x"] - log(sum(exp(in["x"]), axis, keepdims)); };
      c.reference = [=](const Inputs& in) { return reference::log_softmax(in["x"], axis); };
      c.kernel = "log_softmax";
      c.backward_kernel = "log_softmax_backward";
      c.refuses<ShapeError>("an axis out of range", "[log_softmax] axis -4",
                            [](const Inputs& in) { return log_softmax(in["x"], -4); });
    });
  }
}

void add_softmax(Cases& cases) {
  // The rows are longer than a vector register. The examples hold masked, large and equal logits.
  cases.add("softmax, long rows", [](Case& c) {
    c.input("x", {2, 37});
    c.value = [](const Inputs& in) { return softmax(in["x"]); };
    c.oracle = [](const Inputs& in) { return reference::softmax(in["x"]); };
    c.example({.name = "four equal logits and a masked one",
               .inputs = {{"x", tensor({5, 5, -infinity, 5, 5}, f64)}},
               .value = {0.25, 0.25, 0, 0.25, 0.25},
               .cotangent = {1, 2, 100, 3, 6},
               .gradients = {{"x", {-0.5, -0.25, 0, 0, 0.75}}}});
    c.example({.name = "every logit of a row is -inf",
               .inputs = {{"x", tensor({{-infinity, -infinity}, {0, 0}}, f64)}},
               .value = {0, 0, 0.5, 0.5},
               .cotangent = {3, 5, 4, 8},
               .gradients = {{"x", {0, 0, -1, 1}}}});
    c.example({.name = "large logits",
               .inputs = {{"x", tensor({{1e8, 1e8, 0}, {-1e8, -1e8, -2e8}}, f64)}},
               .value = {0.5, 0.5, 0, 0.5, 0.5, 0},
               .cotangent = {4, 8, 100, 4, 8, 100},
               .gradients = {{"x", {-1, 1, 0, -1, 1, 0}}}});
  });
}

void add_log_softmax(Cases& cases) {
  cases.add("log_softmax, long rows", [](Case& c) {
    c.input("x", {2, 37});
    c.value = [](const Inputs& in) { return log_softmax(in["x"]); };
    c.oracle = [](const Inputs& in) { return reference::log_softmax(in["x"]); };
    const double l2 = std::log(2.0);
    c.example({.name = "one masked logit",
               .inputs = {{"x", tensor({3, -infinity, 3}, f64)}},
               .value = {-l2, -infinity, -l2},
               .cotangent = {4, 0, 8},
               .gradients = {{"x", {-2, 0, 2}}}});
    c.example({.name = "every logit of a row is -inf",
               .inputs = {{"x", tensor({{-infinity, -infinity}, {0, 0}}, f64)}},
               .value = {-infinity, -infinity, -l2, -l2},
               .cotangent = {3, 5, 4, 8},
               .gradients = {{"x", {0, 0, -2, 2}}}});
    c.example({.name = "large logits",
               .inputs = {{"x", tensor({1e8, 1e8}, f64)}},
               .value = {-l2, -l2},
               .cotangent = {4, 8},
               .gradients = {{"x", {-2, 2}}}});
  });
}

}  // namespace

void add_softmax_cases(Cases& cases) {
  add_rows_along_axes(cases);
  add_softmax(cases);
  add_log_softmax(cases);
}

}  // namespace fovea
