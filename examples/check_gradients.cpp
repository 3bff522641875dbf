// Checks the gradients of a function, of a layer, and of a layer that is too large to check element by
// element, and shows the report on a wrong rule.

#include <fmt/core.h>

#include "fovea/fovea.h"

using namespace fovea;

namespace {

// [wrong]
// x W + b, whose rule does not sum over the batch: the gradient of b is that of the first row only.
Tensor wrong_linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  const Tensor y = (matmul(x, W) + b).detach();
  return record("wrong_linear", y, {x, W, b}, {x, W},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  const Tensor &x = saved[0], &W = saved[1];
                  return {matmul(dy, transpose(W)), matmul(transpose(x), dy), select(dy, 0, 0)};
                });
}
// [wrong]

bool check_a_function(Rng& rng) {
  // [function]
  const auto gated = [](const Tensor& x, const Tensor& gate) { return tanh(x) * sigmoid(gate); };
  const auto report =
      gradcheck(gated, {{"x", randn({3, 5}, rng)}, {"gate", randn({3, 5}, rng)}}, {.order = 2});
  fmt::print("{}\n\n", report);
  // [function]
  return report.passed();
}

bool check_a_layer(Rng& rng) {
  // [layer]
  const SelfAttention attention(7, 5, rng);
  const auto report = gradcheck(attention, randn({2, 3, 7}, rng));  // all parameters, and x
  fmt::print("{}\n\n", report);
  // [layer]
  return report.passed();
}

bool screen_a_large_layer(Rng& rng) {
  // [screen]
  const Linear large(257, 401, rng);  // 103,458 parameters
  const auto report =
      gradcheck(large, randn({3, 257}, rng), {.screen = Screen{.directions = 4, .elements = 10}});
  fmt::print("{}\n\n", report);
  // [screen]
  return report.passed();
}

bool find_a_bug(Rng& rng) {
  // [find]
  const auto report =
      gradcheck(wrong_linear, {{"x", randn({3, 5}, rng)}, {"W", randn({5, 2}, rng)}, {"b", randn({2}, rng)}});
  fmt::print("{}\n\n", report);
  // [find]
  return !report.passed();
}

bool multiply_by_jacobians(Rng& rng) {
  // [products]
  const Tensor x = randn({3, 5}, rng, f64), v = randn({3, 5}, rng, f64), u = randn({3, 5}, rng, f64);
  const auto f = [](const Tensor& t) { return softmax(t); };
  const Tensor Jv = jvp(f, x, v), JTu = vjp(f, x, u);
  fmt::print("<u, J v> = {:.12f}, <J^T u, v> = {:.12f}\n", sum(u * Jv).item(), sum(JTu * v).item());
  // [products]
  return std::abs(sum(u * Jv).item() - sum(JTu * v).item()) < 1e-12;
}

}  // namespace

int main() {
  Rng rng(3);
  const bool as_expected = check_a_function(rng) && check_a_layer(rng) && screen_a_large_layer(rng) &&
                           find_a_bug(rng) && multiply_by_jacobians(rng);
  return as_expected ? 0 : 1;
}
