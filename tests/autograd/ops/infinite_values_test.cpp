#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/base/non_finite.h"
#include "autograd/ops/reference.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// Losses and softmax of infinite logits, where the limit is known. Elementwise functions are in
// tests/cases/accuracy_test.cpp.

namespace fovea {
namespace {

using Values = std::vector<double>;

// The value, and the gradient by x in both ways: by the kernels, and as part of the graph.
template <class F>
void check_limit(const F& f, const Tensor& at, const Values& value, const Values& gradient) {
  Tensor x = clone(at).set_requires_grad();
  const Tensor y = f(x);
  CHECK(y.to_vector() == value);
  const std::vector<Tensor> cotangents{ones(y.shape(), y.dtype())};
  for (const bool create_graph : {false, true}) {
    INFO("create_graph " << create_graph);
    const GradOptions options{.gradients = cotangents, .retain_graph = true, .create_graph = create_graph};
    CHECK(grad({y}, {x}, options)[0].to_vector() == gradient);
  }
}

bool all_nan(const Values& values) {
  return std::ranges::all_of(values, [](double value) { return std::isnan(value); });
}

}  // namespace

TEST_CASE("binary cross-entropy of infinite logits: 0 if they are right, infinite if they are wrong") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor targets = tensor({1, 0, 1, 0}, dtype);
  const Tensor right = tensor({infinity, -infinity, 3, infinity}, dtype);
  const double small = binary_cross_entropy_with_logits(scalar(3, dtype), scalar(1, dtype)).item();
  const double slope = -sigmoid(scalar(-3, dtype)).item();
  const auto loss = [&](Reduction reduction) {
    return [=](const Tensor& x) {
      return binary_cross_entropy_with_logits(x, slice(targets, 0, 0, x.size(0)), {.reduction = reduction});
    };
  };
  check_limit(loss(Reduction::none), right, {0, 0, small, infinity}, {0, 0, slope, 1});
  check_limit(loss(Reduction::sum), slice(right, 0, 0, 3), {small}, {0, 0, slope});
  CHECK(loss(Reduction::mean)(slice(right, 0, 0, 2)).item() == 0);
  check_limit(loss(Reduction::none), tensor({-infinity}, dtype), {infinity}, {-1});
  CHECK(std::isnan(loss(Reduction::mean)(tensor({nan, 0}, dtype)).item()));
}

TEST_CASE("the gradient of binary cross-entropy by an infinite logit's target is infinite") {
  Tensor targets = tensor({1, 0}, f64).set_requires_grad();
  const Tensor logits = tensor({infinity, -infinity}, f64);
  backward(binary_cross_entropy_with_logits(logits, targets, {.reduction = Reduction::sum}));
  CHECK(targets.grad().to_vector() == Values{-infinity, infinity});
}

TEST_CASE("softmax, log_softmax and logsumexp of a row with one +inf are its limit") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = tensor({2, infinity, -infinity, 1e30}, dtype);
  for (const auto f : {softmax, reference::softmax}) {
    check_limit([&](const Tensor& v) { return f(v, -1); }, x, {0, 1, 0, 0}, {0, 0, 0, 0});
  }
  for (const auto f : {log_softmax, reference::log_softmax}) {
    CHECK(f(x, -1).to_vector() == Values{-infinity, 0, -infinity, -infinity});
  }
  check_limit([](const Tensor& v) { return logsumexp(v, -1); }, x, {infinity}, {0, 1, 0, 0});
  // Of several, or beside a NaN, the limit is not known.
  CHECK(all_nan(slice(softmax(tensor({infinity, infinity, 0}, dtype)), 0, 0, 2).to_vector()));
  CHECK(all_nan(slice(reference::softmax(tensor({infinity, infinity, 0}, dtype)), 0, 0, 2).to_vector()));
  CHECK(all_nan(softmax(tensor({infinity, nan, 0}, dtype)).to_vector()));
}

TEST_CASE("cross_entropy of a row with one +inf: 0 at its target, infinite elsewhere") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor logits = tensor({{2, infinity, -3}, {0, 0, infinity}}, dtype);
  for (const auto f : {cross_entropy, reference::cross_entropy}) {
    check_limit([&](const Tensor& x) { return f(x, {1, 2}, {}).loss; }, logits, {0}, Values(6, 0));
    check_limit(
        [&](const Tensor& x) {
          return f(x, {1, 2}, {.ignore_index = 2}).loss;
        },
        logits, {0}, Values(6, 0));
    CHECK(f(logits, {1, 0}, {}).loss.item() == infinity);
    CHECK(f(logits, {1, 2}, {.label_smoothing = 0.1}).loss.item() == infinity);
    CHECK(f(logits, {1, 2}, {.z_loss = 0.1}).loss.item() == infinity);
    CHECK(std::isnan(f(tensor({{infinity, infinity}}, dtype), {1}, {}).loss.item()));
    CHECK(std::isnan(f(tensor({{infinity, nan}}, dtype), {0}, {}).loss.item()));
  }
  check_limit([](const Tensor& x) { return cross_entropy(x, {0}).loss; }, tensor({{0, infinity}}, dtype),
              {infinity}, {-1, 1});
}

TEST_CASE("a power of infinity and its gradient by the exponent") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor a = tensor({infinity, infinity, 0.5, 2}, dtype);
  check_limit([&](const Tensor& b) { return pow(a, b); }, tensor({-2, 2, infinity, -infinity}, dtype),
              {0, infinity, 0, 0}, {0, infinity, 0, 0});
}

}  // namespace fovea
