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

// The value and first derivative of such rows are among the rows of the case table.
TEST_CASE("a row that is -inf throughout has second derivatives of 0") {
  const Dtype dtype = GENERATE(f32, f64);
  Tensor x = tensor({{-infinity, -infinity, -infinity}, {1, 2, 3}}, dtype);
  x.set_requires_grad();
  const Tensor u = tensor({{1, 2, 3}, {4, 5, 7}}, dtype);
  const Tensor first = grad({softmax(x)}, {x}, {.gradients = {u}, .create_graph = true})[0];
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
  // log(1 - (exp(-299) + exp(-298))), which f32 can't tell from 0.
  const double nearly_certain = dtype == f64 ? -(std::exp(-299.0) + std::exp(-298.0)) : 0;
  CHECK(y.at({0, 2}) == Approx(nearly_certain).epsilon(1e-12).margin(0));
  CHECK(y.at({1, 1}) == Approx(-5 - std::log(1 + std::exp(-5) + std::exp(-10))));
}
