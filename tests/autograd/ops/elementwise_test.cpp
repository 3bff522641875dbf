#include "fovea/autograd/ops/elementwise.h"

#include <cmath>

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/derivatives.h"
#include "fovea/gradcheck/gradcheck.h"
#include "tests/support/catch.h"

// Elementwise ops of one's own.

using namespace fovea;

namespace {

Tensor sine(const Tensor& x);
Tensor cosine(const Tensor& x) {
  return elementwise(
      "cosine", x, [](auto v) { return std::cos(v); }, [](const Tensor& x) { return -sine(x); });
}
Tensor sine(const Tensor& x) {
  return elementwise(
      "sine", x, [](auto v) { return std::sin(v); }, cosine);
}
Tensor exponential(const Tensor& x) {
  return elementwise(
      "exponential", x, [](auto v) { return std::exp(v); }, [](const Tensor& y) { return y; }, In::y);
}
// Its slope at 0 is infinite.
Tensor cube_root(const Tensor& x) {
  return elementwise(
      "cube_root", x, [](double v) { return std::cbrt(v); },
      [](const Tensor& y) { return 1.0 / (3.0 * (y * y)); }, In::y);
}

}  // namespace

TEST_CASE("an elementwise op of one's own has derivatives of any order") {
  Rng rng(5);
  const Tensor x = randn({3, 5}, rng);
  for (const int order : {1, 2}) {
    CHECK(gradcheck(sine, {{"x", x}}, {.order = order}));
    CHECK(gradcheck(exponential, {{"x", transpose(x)}}, {.order = order}));
  }
  const Tensor at = tensor({0.7}, f64);
  const Function third = [](const Tensor& t) {
    return grad({grad({sine(t)}, {t}, {.create_graph = true})[0]}, {t}, {.create_graph = true})[0];
  };
  CHECK(jacobian(third, at).item() == Approx(-std::cos(0.7)));
}

TEST_CASE("an elementwise op of one's own works in both dtypes, on views and on nothing") {
  const Tensor x = tensor({{0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}}, f64);
  const Tensor y = sine(transpose(x));
  CHECK(y.shape() == Shape{3, 2});
  CHECK(y.at({2, 1}) == std::sin(0.6));
  CHECK(sine(to(x, f32)).dtype() == f32);
  CHECK(sine(to(x, f32)).at({1, 2}) == static_cast<double>(std::sin(0.6F)));
  CHECK(sine(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(sum(exponential(zeros({1 << 20}, f64))).item() == 1 << 20);
}

TEST_CASE("an exact zero in the cotangent wins over an infinite slope") {
  const Tensor x = tensor({0, 8}, f64).set_requires_grad();
  backward(sum(where(x == 0.0, 0.0, cube_root(x))));
  CHECK(x.grad().to_vector()[0] == 0);
  CHECK(x.grad().to_vector()[1] == Approx(1.0 / 12));
}
