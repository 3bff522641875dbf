#include <cmath>
#include <limits>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using Values = std::vector<double>;

}  // namespace

TEST_CASE("softmax of four equal logits and a masked one") {
  const Dtype dtype = GENERATE(f32, f64);
  Tensor x = tensor({3, 3, -infinity, 3, 3}, dtype);
  x.set_requires_grad();
  const Tensor y = softmax(x);
  CHECK(y.to_vector() == Values{0.25, 0.25, 0, 0.25, 0.25});
  backward(y, {.gradient = tensor({1, 2, 1000, 3, 4}, dtype)});
  CHECK(x.grad().at({2}) == 0);
  CHECK(sum(x.grad()).item() == Approx(0).margin(1e-6));
  CHECK(x.grad().at({0}) == Approx(-0.375));
}

TEST_CASE("a fully masked row gives zeros, and finite gradients at every order") {
  const Dtype dtype = GENERATE(f32, f64);
  Tensor x = tensor({{-infinity, -infinity, -infinity}, {1, 2, 3}}, dtype);
  x.set_requires_grad();
  const Tensor u = tensor({{1, 2, 3}, {4, 5, 7}}, dtype);
  const Tensor y = softmax(x);
  CHECK(slice(y, 0, 0, 1).to_vector() == Values{0, 0, 0});
  const Tensor first = grad({y}, {x}, {.gradients = {u}, .create_graph = true})[0];
  CHECK(slice(first, 0, 0, 1).to_vector() == Values{0, 0, 0});
  const Tensor second = grad({first}, {x}, {.gradients = {u}})[0];
  CHECK(all(is_finite(second)));
  CHECK(slice(second, 0, 0, 1).to_vector() == Values{0, 0, 0});
}

TEST_CASE("softmax does not overflow, and shifting all logits changes nothing") {
  const Dtype dtype = GENERATE(f32, f64);
  for (const double shift : {-1e30, -1e4, 1e4, 1e30}) {
    CHECK(softmax(full({4}, shift, dtype)).to_vector() == Values(4, 0.25));
  }
  const Values y = softmax(tensor({1e38, -1e38, 0}, dtype)).to_vector();
  CHECK(y == Values{1, 0, 0});
}

TEST_CASE("rows of softmax sum to 1, however long") {
  Rng rng(3);
  for (const std::int64_t n : {1, 2, 17, 1000, 100'003}) {
    const Tensor y = softmax(5 * randn({3, n}, rng));
    for (const double total : sum(to(y, f64), -1).to_vector()) CHECK(total == Approx(1).margin(2e-6));
  }
}

TEST_CASE("log_softmax is the logarithm of softmax where that is not lost") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = tensor({{1, 2, 300}, {-5, 0, 5}}, dtype);
  const Tensor y = log_softmax(x);
  CHECK(y.at({0, 0}) == Approx(-299));
  CHECK(y.at({0, 2}) == 0);
  CHECK(y.at({1, 1}) == Approx(-5 - std::log(1 + std::exp(-5) + std::exp(-10))));
}
