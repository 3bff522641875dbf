#include <cmath>

#include "autograd/ops/reference.h"
#include "cases/cases.h"

namespace fovea {
namespace {

// Phi(x), the cumulative distribution function of the standard normal, accurate in both tails.
double normal_cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }

double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

void add_sigmoid_and_relu(Cases& cases) {
  cases.add("sigmoid", [](Case& c) {
    c.input("x", {5, 7}, {-4, 4});
    c.value = [](const Inputs& in) { return sigmoid(in["x"]); };
    c.oracle = [](const Inputs& in) {
      return map_elements(in["x"], [](double x) { return 1 / (1 + std::exp(-x)); });
    };
    c.example({.name = "at large |x|",
               .inputs = {{"x", tensor({-1000, 0, 1000}, f64)}},
               .value = {0, 0.5, 1},
               .gradients = {{"x", {0, 0.25, 0}}}});
  });
  cases.add("relu", [](Case& c) {
    c.input("x", {5, 7});
    c.value = [](const Inputs& in) { return relu(in["x"]); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], [](double x) { return x > 0 ? x : 0; }); };
    c.example({.name = "at 0",
               .inputs = {{"x", tensor({-1, 0, 2}, f64)}},
               .value = {0, 0, 2},
               .cotangent = {3, 5, 7},
               .gradients = {{"x", {0, 0, 7}}}});
  });
}

void add_silu(Cases& cases) {
  cases.add("silu", [](Case& c) {
    c.input("x", {5, 7}, {-4, 4});
    c.value = [](const Inputs& in) { return silu(in["x"]); };
    c.reference = [](const Inputs& in) { return reference::silu(in["x"]); };
    c.oracle = [](const Inputs& in) {
      return map_elements(in["x"], [](double x) { return x / (1 + std::exp(-x)); });
    };
    c.example({.name = "at large |x|",
               .inputs = {{"x", tensor({-1000, 0, 1000}, f64)}},
               .value = {0, 0, 1000},
               .gradients = {{"x", {0, 0.5, 1}}}});
  });
}

void add_gelu(Cases& cases) {
  cases.add("gelu", [](Case& c) {
    c.input("x", {5, 7}, {-4, 4});
    c.value = [](const Inputs& in) { return gelu(in["x"]); };
    c.reference = [](const Inputs& in) { return reference::gelu(in["x"]); };
    c.oracle = [](const Inputs& in) {
      return map_elements(in["x"], [](double x) { return x * normal_cdf(x); });
    };
    const double at_1 = normal_cdf(1) + normal_density(1);
    c.example({.name = "at -1, 0 and 1",
               .inputs = {{"x", tensor({-1, 0, 1}, f64)}},
               .value = {-normal_cdf(-1), 0, normal_cdf(1)},
               .gradients = {{"x", {1 - at_1, 0.5, at_1}}}});
    c.example({.name = "at large |x|",
               .inputs = {{"x", tensor({-1000, 1000}, f64)}},
               .value = {0, 1000},
               .gradients = {{"x", {0, 1}}}});
  });
  cases.add("gelu, tanh approximation", [](Case& c) {
    c.input("x", {5, 7}, {-4, 4});
    c.value = [](const Inputs& in) { return gelu(in["x"], {.tanh = true}); };
    c.reference = [](const Inputs& in) { return reference::gelu(in["x"], {.tanh = true}); };
    c.oracle = [](const Inputs& in) { return map_elements(in["x"], gelu_tanh); };
    c.example({.name = "at large |x|",
               .inputs = {{"x", tensor({-1000, 1000}, f64)}},
               .value = {0, 1000},
               .gradients = {{"x", {0, 1}}}});
  });
}

}  // namespace

void add_activations_cases(Cases& cases) {
  add_sigmoid_and_relu(cases);
  add_silu(cases);
  add_gelu(cases);
}

}  // namespace fovea
