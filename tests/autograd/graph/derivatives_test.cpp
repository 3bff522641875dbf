#include "fovea/autograd/graph/derivatives.h"

#include <cmath>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/recompute.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Values = std::vector<double>;

void check_close(const Tensor& actual, const Tensor& expected, double margin = 1e-12) {
  REQUIRE(actual.shape() == expected.shape());
  const Values a = actual.to_vector(), e = expected.to_vector();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(e[i]).margin(margin));
}

}  // namespace

TEST_CASE("the jacobian of a linear map is its matrix") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(3);
  const Tensor A = randn({5, 3}, rng, dtype);
  const Tensor J = jacobian([&](const Tensor& x) { return matmul(A, x); }, randn({3}, rng, dtype));
  CHECK(J.dtype() == dtype);
  check_close(J, A);
}

TEST_CASE("the jacobian's shape is that of the output, then that of the input") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, f64);
  const Tensor J = jacobian([](const Tensor& v) { return transpose(v) * transpose(v); }, x);
  CHECK(J.shape() == Shape{3, 2, 2, 3});
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t k = 0; k < 2; ++k) {
        for (std::int64_t l = 0; l < 3; ++l) {
          CHECK(J.at({i, j, k, l}) == (i == l && j == k ? 2 * x.at({j, i}) : 0));
        }
      }
    }
  }
}

TEST_CASE("the jacobian of softmax is diag(y) - y y^T") {
  const Tensor x = tensor({0.3, -1, 2, 0.5}, f64);
  const Tensor y = softmax(x);
  check_close(jacobian([](const Tensor& v) { return softmax(v); }, x),
              eye(4, f64) * y - reshape(y, {4, 1}) * reshape(y, {1, 4}));
}

TEST_CASE("the jacobian of a constant is zero") {
  const Tensor J = jacobian([](const Tensor&) { return ones({3}, f64); }, ones({5}, f64));
  CHECK(J.shape() == Shape{3, 5});
  CHECK(J.to_vector() == Values(15, 0));
}

TEST_CASE("the hessian of a quadratic form is A + A^T") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(5);
  const Tensor A = randn({3, 3}, rng, dtype), x = randn({3}, rng, dtype), v = randn({3}, rng, dtype);
  const auto f = [&](const Tensor& t) { return matmul(t, matmul(A, t)); };
  const Tensor expected = A + transpose(A);
  check_close(hessian(f, x), expected, 1e-5);
  check_close(hvp(f, x, v), matmul(expected, v), 1e-5);
}

TEST_CASE("the hessian of logsumexp is diag(p) - p p^T") {
  const Tensor x = tensor({{0.3, -1}, {2, 0.5}}, f64);
  const Tensor p = reshape(softmax(reshape(x, {4})), {4});
  const Tensor expected = eye(4, f64) * p - reshape(p, {4, 1}) * reshape(p, {1, 4});
  const Tensor H = hessian([](const Tensor& t) { return logsumexp(t, {0, 1}); }, x);
  CHECK(H.shape() == Shape{2, 2, 2, 2});
  check_close(reshape(H, {4, 4}), expected);
}

TEST_CASE("the hessian of a linear or constant function is zero") {
  const Tensor x = ones({3}, f64);
  CHECK(hessian([](const Tensor& t) { return sum(t * 2); }, x).to_vector() == Values(9, 0));
  CHECK(hessian([](const Tensor&) { return scalar(1, f64); }, x).to_vector() == Values(9, 0));
  CHECK(hvp([](const Tensor& t) { return sum(t * 2); }, x, x).to_vector() == Values(3, 0));
  CHECK(hvp([](const Tensor&) { return scalar(1, f64); }, x, x).to_vector() == Values(3, 0));
}

TEST_CASE("(exp x - 1)^2 has second derivative 2 at 0") {
  const Dtype dtype = GENERATE(f32, f64);
  const auto f = [](const Tensor& x) {
    const Tensor e = exp(x) - 1;
    return e * e;
  };
  CHECK(hessian(f, scalar(0, dtype)).item() == 2);
  // Its first derivative is 0 there, and must not take the second with it.
  CHECK(hessian([](const Tensor& x) { return pow(exp(x) - 1, 2); }, scalar(0, dtype)).item() == 2);
}

TEST_CASE("a zero cotangent does not cut the graph") {
  // d2/dx2 of x^2 log(1 + x) ... at points where one factor's derivative vanishes.
  const auto f = [](const Tensor& x) { return x * x * sqrt(1 + x * x * x); };
  CHECK(hessian(f, scalar(0, f64)).item() == Approx(2));
  CHECK(hessian([](const Tensor& x) { return relu(x) * relu(x); }, scalar(1, f64)).item() == Approx(2));
  CHECK(hessian([](const Tensor& x) { return pow(x, 3); }, scalar(0, f64)).item() == 0);
  CHECK(hessian([](const Tensor& x) { return pow(x, 2); }, scalar(0, f64)).item() == 2);
}

TEST_CASE("derivatives of any order") {
  // The n-th derivative of exp(2 x) is 2^n exp(2 x); of tanh, a polynomial in tanh.
  const Tensor x = Tensor(scalar(0.3, f64)).set_requires_grad();
  Tensor y = exp(2 * x);
  for (int n = 1; n <= 6; ++n) {
    y = grad({y}, {x}, {.create_graph = true})[0];
    CHECK(y.item() == Approx(std::pow(2, n) * std::exp(0.6)));
  }
  const double t = std::tanh(0.3);
  y = tanh(x);
  const double expected[] = {1 - t * t, -2 * t * (1 - t * t), (1 - t * t) * (6 * t * t - 2)};
  for (const double value : expected) {
    y = grad({y}, {x}, {.create_graph = true})[0];
    CHECK(y.item() == Approx(value));
  }
}

TEST_CASE("third derivatives go through the fused ops") {
  // f along a line is a function of one number, differentiated thrice and by differences of the second.
  Rng rng(7);
  const Tensor x = randn({5}, rng, f64), direction = randn({5}, rng, f64), u = randn({5}, rng, f64);
  const auto check = [&](auto op) {
    const auto along = [&](const Tensor& s) { return sum(u * op(x + s * direction)); };
    const auto second = [&](double s) { return hessian(along, scalar(s, f64)).item(); };
    const Tensor s = Tensor(scalar(0, f64)).set_requires_grad();
    Tensor y = along(s);
    for (int n = 0; n < 3; ++n) y = grad({y}, {s}, {.create_graph = true})[0];
    const double h = 1e-3;
    const double numeric = (8 * (second(h) - second(-h)) - (second(2 * h) - second(-2 * h))) / (12 * h);
    CHECK(y.item() == Approx(numeric).epsilon(1e-6).margin(1e-7));
  };
  check([](const Tensor& v) { return softmax(v); });
  check([](const Tensor& v) { return log_softmax(v); });
  check([](const Tensor& v) { return layer_norm(v); });
  check([](const Tensor& v) { return gelu(v); });
  check([](const Tensor& v) { return silu(v); });
  check([](const Tensor& v) { return cross_entropy(v, Indices({}, std::vector<std::int64_t>{2})).loss; });
}

TEST_CASE("derivatives leave their input alone and say what does not fit") {
  const Tensor x = ones({3}, f64);
  const auto f = [](const Tensor& t) { return sum(t * t); };
  jacobian(f, x);
  hessian(f, x);
  hvp(f, x, x);
  CHECK_FALSE(x.requires_grad());
  CHECK(x.version() == 0);
  CHECK_THROWS_AS(hessian([](const Tensor& t) { return t * t; }, x), ShapeError);
  CHECK_THROWS_WITH(hessian([](const Tensor& t) { return t * t; }, x),
                    ContainsSubstring("[hessian]") && ContainsSubstring("(3,)"));
  CHECK_THROWS_AS(hvp([](const Tensor& t) { return t * t; }, x, x), ShapeError);
  CHECK_THROWS_AS(hvp(f, x, ones({5}, f64)), ShapeError);
  CHECK_THROWS_WITH(hvp(f, x, ones({5}, f64)),
                    ContainsSubstring("[hvp]") && ContainsSubstring("(5,)") && ContainsSubstring("(3,)"));
}

TEST_CASE("jvp and vjp are the Jacobian's products") {
  Rng rng(3);
  const Tensor x = randn({3, 5}, rng, f64), v = randn({3, 5}, rng, f64), W = randn({5, 2}, rng, f64);
  const auto f = [&](const Tensor& t) { return matmul(tanh(t), W); };
  const Tensor u = randn({3, 2}, rng, f64);
  const Tensor J = reshape(jacobian(f, x), {6, 15});
  const std::vector<double> forward = matmul(J, reshape(v, {15, 1})).to_vector();
  const std::vector<double> backward = matmul(reshape(u, {1, 6}), J).to_vector();
  const Tensor along = jvp(f, x, v), back = vjp(f, x, u);
  CHECK(along.shape() == Shape{3, 2});
  CHECK(back.shape() == x.shape());
  for (std::size_t i = 0; i < 6; ++i) CHECK(along.to_vector()[i] == Approx(forward[i]).epsilon(1e-12));
  for (std::size_t i = 0; i < 15; ++i) CHECK(back.to_vector()[i] == Approx(backward[i]).epsilon(1e-12));

  // And the change of f along v, by finite differences.
  const std::vector<double> up = f(x + 1e-6 * v).to_vector(), down = f(x - 1e-6 * v).to_vector();
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(along.to_vector()[i] == Approx((up[i] - down[i]) / 2e-6).epsilon(1e-6));

  const auto constant = [](const Tensor& t) { return ones({2}, t.dtype()); };
  CHECK(jvp(constant, x, v).to_vector() == std::vector<double>{0, 0});
  CHECK(vjp(constant, x, ones({2}, f64)).to_vector() == std::vector<double>(15, 0));
  CHECK(jvp([](const Tensor& t) { return 3 * t; }, x, v).to_vector() == (3 * v).to_vector());
  CHECK_THROWS_WITH(jvp(f, x, u), ContainsSubstring("[jvp]") && ContainsSubstring("(3, 2)"));
  CHECK_THROWS_WITH(vjp(f, x, v), ContainsSubstring("[vjp]") && ContainsSubstring("the output (3, 2)"));
}

TEST_CASE("derivatives are the same inside NoGrad, in a recomputed function and in a rule") {
  const Tensor x = tensor({0.3, -1, 2}, f64), v = tensor({0.7, 2, -0.4}, f64);
  const Function cube = [](const Tensor& t) { return t * t * t; };
  const Function total = [](const Tensor& t) { return sum(t * t * t); };
  const auto all = [&] {
    return concat({reshape(jacobian(cube, x), {9}), reshape(hessian(total, x), {9}), hvp(total, x, v),
                   vjp(cube, x, v), jvp(cube, x, v)},
                  0);
  };
  const Tensor expected =
      concat({reshape(eye(3, f64) * 3.0 * x * x, {9}), reshape(eye(3, f64) * 6.0 * x, {9}), 6.0 * x * v,
              3.0 * x * x * v, 3.0 * x * x * v},
             0);
  check_close(all(), expected);
  {
    const NoGrad off;
    check_close(all(), expected);
    CHECK_FALSE(recording());
    CHECK_FALSE(all().requires_grad());
  }
  {
    const EvalMode evaluation;
    const NoGrad off;
    check_close(all(), expected);
  }
  Tensor w = ones({1}, f64);
  w.set_requires_grad();
  Tensor inside;
  const auto scaled = [&](const Tensor& t) {
    inside = all();
    return t * inside;
  };
  const Tensor y = recompute(scaled, w);
  check_close(inside, expected);

  Tensor in_rule;
  backward(record("probe", w * 1.0, {w}, {},
                  [&](const Saved&, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    in_rule = all();
                    return {dy};
                  }));
  check_close(in_rule, expected);
}
