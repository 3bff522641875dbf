#include <cmath>
#include <limits>
#include <vector>

#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// The edges of calculus: kinks, ties, bounds, and derivatives that are not finite where nothing comes in.

using namespace fovea;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using Values = std::vector<double>;

template <class F>
Values gradient(const F& f, Tensor x, const Tensor& cotangent = {}) {
  x.set_requires_grad();
  const Tensor y = f(x);
  const std::vector<Tensor> cotangents = cotangent.defined() ? std::vector{cotangent} : std::vector<Tensor>();
  const Values plain = grad({y}, {x}, {.gradients = cotangents, .retain_graph = true})[0].to_vector();
  // The same when it will be differentiated again.
  CHECK(grad({y}, {x}, {.gradients = cotangents, .create_graph = true})[0].to_vector() == plain);
  return plain;
}

}  // namespace

TEST_CASE("the branch that where did not take sends nothing back") {
  const Dtype dtype = GENERATE(f32, f64);
  const auto f = [](const Tensor& x) { return sum(where(x <= 0.0, exp(x), 1 + x)); };
  CHECK(gradient(f, tensor({100, 1000, -1}, dtype))[0] == 1);
  CHECK(gradient(f, tensor({100, 1000, -1}, dtype))[1] == 1);
  CHECK(gradient(f, tensor({100, 1000, -1}, dtype))[2] == Approx(std::exp(-1)));
  // Also when the branch is not finite by division, root or logarithm, or several ops long.
  CHECK(gradient([](const Tensor& x) { return sum(where(x == 0.0, 0.0, 1 / x)); }, tensor({0, 2}, dtype)) ==
        Values{0, -0.25});
  CHECK(gradient([](const Tensor& x) { return sum(where(x > 0.0, log(x), 0.0)); }, tensor({0, 2}, dtype)) ==
        Values{0, 0.5});
  CHECK(gradient([](const Tensor& x) { return sum(where(x > 0.0, rsqrt(x), 0.0)); }, tensor({0, 4}, dtype)) ==
        Values{0, -0.0625});
  CHECK(gradient([](const Tensor& x) { return sum(where(x > 0.0, pow(x, -1.5), x)); },
                 tensor({0, 1}, dtype)) == Values{1, -1.5});
  CHECK(gradient([](const Tensor& x) { return sum(where(x < 10.0, x, exp(x * x) / x)); },
                 tensor({1, 2}, dtype)) == Values{1, 1});
}

TEST_CASE("a derivative that is not finite is kept where the cotangent is not zero") {
  const Dtype dtype = GENERATE(f32, f64);
  CHECK(gradient([](const Tensor& x) { return sum(log(x)); }, tensor({0, 1}, dtype)) == Values{infinity, 1});
}

TEST_CASE("a zero cotangent annihilates an infinite derivative in second derivatives as well") {
  const Dtype dtype = GENERATE(f32, f64);
  Tensor x = tensor({0, 2}, dtype), weight = tensor({0, 3}, dtype);
  x.set_requires_grad();
  weight.set_requires_grad();
  const Tensor first = grad({sum(weight * log(x))}, {x}, {.create_graph = true})[0];
  CHECK(first.to_vector() == Values{0, 1.5});
  const std::vector<Tensor> second = grad({sum(first)}, {x, weight});
  CHECK(second[0].to_vector() == Values{0, -0.75});
  CHECK(second[1].to_vector() == Values{0, 0.5});
}

TEST_CASE("sqrt at 0 has gradient 0 for any cotangent") {
  const Dtype dtype = GENERATE(f32, f64);
  CHECK(gradient([](const Tensor& x) { return sqrt(x); }, tensor({0, 4}, dtype), tensor({3, 8}, dtype)) ==
        Values{0, 2});
  // The norm of a zero vector.
  CHECK(gradient([](const Tensor& x) { return sqrt(sum(x * x)); }, zeros({3}, dtype)) == Values{0, 0, 0});
}

TEST_CASE("relu and abs at 0 have gradient 0") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor u = tensor({3, 5, 7, 11}, dtype), x = tensor({-1, 0, -0.0, 2}, dtype);
  CHECK(gradient([](const Tensor& v) { return relu(v); }, clone(x), u) == Values{0, 0, 0, 11});
  CHECK(gradient([](const Tensor& v) { return abs(v); }, clone(x), u) == Values{-3, 0, 0, 11});
}

TEST_CASE("ties share the gradient equally") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = tensor({{2, 2, 1}, {3, 3, 3}}, dtype);
  CHECK(gradient([](const Tensor& v) { return max(v, -1); }, clone(x), tensor({6, 12}, dtype)) ==
        Values{3, 3, 0, 4, 4, 4});
  CHECK(gradient([](const Tensor& v) { return 3 * max(v); }, clone(x)) == Values{0, 0, 0, 1, 1, 1});
  CHECK(gradient([](const Tensor& v) { return maximum(v, v); }, ones({2}, dtype), tensor({3, 5}, dtype)) ==
        Values{3, 5});
  CHECK(gradient([](const Tensor& v) { return maximum(v, v * 1); }, ones({2}, dtype),
                 tensor({3, 5}, dtype)) == Values{3, 5});
  CHECK(gradient([&](const Tensor& v) { return minimum(v, ones({2}, dtype)); }, ones({2}, dtype),
                 tensor({3, 5}, dtype)) == Values{1.5, 2.5});
}

TEST_CASE("clamp passes the gradient at its bounds and not beyond") {
  const Dtype dtype = GENERATE(f32, f64);
  CHECK(gradient([](const Tensor& v) { return clamp(v, -1, 2); }, tensor({-1.5, -1, 0, 2, 2.5}, dtype),
                 tensor({3, 5, 7, 11, 13}, dtype)) == Values{0, 5, 7, 11, 0});
  // A bound that f32 can't hold is the same bound for the value and for the gradient.
  CHECK(gradient([](const Tensor& v) { return clamp(v, -0.1, 0.1); }, tensor({0.1, -0.1}, dtype),
                 tensor({3, 5}, dtype)) == Values{3, 5});
}

TEST_CASE("powers at 0") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor u = scalar(3, dtype);
  const auto of = [&](double p) {
    return gradient([=](const Tensor& x) { return pow(x, p); }, scalar(0, dtype), u)[0];
  };
  CHECK(of(0) == 0);
  CHECK(of(1) == 3);
  CHECK(of(2) == 0);
  CHECK(of(1.5) == 0);
  CHECK(of(0.5) == infinity);
  CHECK(gradient([](const Tensor& x) { return pow(x, 3); }, tensor({-2.0, 2.0}, dtype),
                 tensor({1, 1}, dtype)) == Values{12, 12});
  // a^b at a = 0: no NaN from ln 0.
  CHECK(gradient([&](const Tensor& b) { return sum(pow(zeros({3}, dtype), b)); }, tensor({0, 1, 2}, dtype)) ==
        Values{0, 0, 0});
}

TEST_CASE("saturated activations have finite gradients") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = tensor({-1e4, -100, 100, 1e4}, dtype);
  for (const auto& f : std::vector<Tensor (*)(const Tensor&)>{
           sigmoid, tanh, silu, [](const Tensor& v) { return gelu(v); },
           [](const Tensor& v) { return gelu(v, {.tanh = true}); },
           [](const Tensor& v) { return softmax(v); }, [](const Tensor& v) { return log_softmax(v); }}) {
    for (const double value : gradient(f, clone(x), ones({4}, dtype))) CHECK(std::isfinite(value));
  }
}

TEST_CASE("empty tensors pass through forward and backward") {
  const Dtype dtype = GENERATE(f32, f64);
  const auto f = [](const Tensor& x) {
    return sum(softmax(exp(x) * 2) + layer_norm(x)) + sum(matmul(x, transpose(x)));
  };
  Tensor x = zeros({0, 3}, dtype);
  x.set_requires_grad();
  const Tensor y = f(x);
  CHECK(y.item() == 0);
  backward(y);
  CHECK(x.grad().shape() == Shape{0, 3});
}
