#include <cmath>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

void check_close(const Tensor& actual, const Tensor& expected) {
  REQUIRE(actual.shape() == expected.shape());
  const std::vector<double> a = actual.to_vector(), e = expected.to_vector();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(e[i]).margin(1e-12));
}

}  // namespace

TEST_CASE("long f32 sums do not lose what is small") {
  constexpr std::int64_t n = 20'000'003;
  // One by one, 16,777,216 + 1 would stay 16,777,216.
  CHECK(sum(ones({n})).item() == static_cast<float>(n));
  CHECK(sum(broadcast_to(scalar(1), {n})).item() == static_cast<float>(n));
  CHECK(mean(ones({n})).item() == 1);
  CHECK(sum(full({1'000'000}, 0.1)).item() == Approx(1e5).epsilon(1e-7));
  const Tensor columns = sum(full({100'000, 3}, 0.1), 0);
  for (const double value : columns.to_vector()) CHECK(value == Approx(1e4).epsilon(1e-7));
  CHECK(sum_to(full({100'000, 3}, 0.1), {3}).at({2}) == Approx(1e4).epsilon(1e-7));
}

TEST_CASE("a gradient that broadcasting adds up is accurate too") {
  Tensor bias = zeros({3});
  bias.set_requires_grad();
  backward(full({100'000, 3}, 0.5) + bias, {.gradient = full({100'000, 3}, 0.1)});
  for (const double value : bias.grad().to_vector()) CHECK(value == Approx(1e4).epsilon(1e-6));
}

TEST_CASE("reductions of views agree with those of their copies") {
  Rng rng(3);
  const Tensor base = randn({7, 5, 11}, rng, f64);
  for (const Tensor& x : {transpose(base), permute(base, {2, 0, 1}), slice(base, 1, 1, 5, 2),
                          broadcast_to(slice(base, 0, 2, 3), {3, 5, 11})}) {
    for (const Axes& axes : {Axes{0}, Axes{1}, Axes{2}, Axes{0, 2}, Axes{2, 1}, Axes{0, 1, 2}}) {
      const Tensor copy = clone(x);
      check_close(sum(x, axes), sum(copy, axes));
      CHECK(max(x, axes).to_vector() == max(copy, axes).to_vector());
      check_close(mean(x, axes), mean(copy, axes));
      check_close(logsumexp(x, axes), logsumexp(copy, axes));
    }
    const Indices a = argmax(x), b = argmax(clone(x));
    CHECK(std::vector<std::int64_t>(a.values().begin(), a.values().end()) ==
          std::vector<std::int64_t>(b.values().begin(), b.values().end()));
  }
}

TEST_CASE("reductions over nothing") {
  CHECK(sum(zeros({3, 0}), 1).to_vector() == std::vector<double>{0, 0, 0});
  CHECK(sum(zeros({0})).item() == 0);
  CHECK(std::isinf(logsumexp(zeros({0}), 0).item()));
  CHECK(sum(zeros({0, 3}), 1).shape() == Shape{0});
  CHECK(max(zeros({0, 3}), 1).shape() == Shape{0});
  CHECK_THROWS_WITH(mean(zeros({0})), ContainsSubstring("[mean]"));
  CHECK_THROWS_AS(max(zeros({3, 0}), 1), ShapeError);
  CHECK_THROWS_AS(argmax(zeros({3, 0})), ShapeError);
}
