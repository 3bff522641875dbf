#include <cmath>
#include <vector>

#include "autograd/ops/reference.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

constexpr GeluOptions by_tanh{.tanh = true};

struct Found {
  std::vector<double> value, slope;
};

Found found_by(Tensor (*f)(const Tensor&, const GeluOptions&), const Tensor& at, bool create_graph) {
  Tensor x = clone(at);
  x.set_requires_grad();
  const Tensor y = f(x, by_tanh);
  const GradOptions options{.gradients = {ones(x.shape(), x.dtype())}, .create_graph = create_graph};
  return {y.to_vector(), grad({y}, {x}, options)[0].to_vector()};
}

}  // namespace

TEST_CASE("GELU by tanh keeps its digits in f32 where it is near 0") {
  // 1 + tanh would have the rounding of 1 there: two digits of the slope at -3, and none from -5.3 on.
  const Tensor x = arange(301, f32) / 75.0 - 5.5;  // to -1.5, below which nothing else cancels
  const double c = std::sqrt(8 / M_PI);
  for (const bool create_graph : {false, true}) {
    for (const auto f : {gelu, reference::gelu}) {
      const Found found = found_by(f, x, create_graph);
      std::size_t i = 0;
      for (const double v : x.to_vector()) {
        const double e = std::exp(-c * (v + 0.044715 * v * v * v)), sigmoid = 1 / (1 + e);
        const double slope = sigmoid + v * sigmoid * sigmoid * e * c * (1 + 3 * 0.044715 * v * v);
        INFO("x " << v << ", create_graph " << create_graph);
        CHECK(found.value[i] == Approx(v * sigmoid).epsilon(1e-5).margin(0));
        CHECK(found.slope[i] == Approx(slope).epsilon(1e-5).margin(0));
        ++i;
      }
    }
  }
}

TEST_CASE("GELU by tanh is 0 or x, with slope 0 or 1, where powers of x overflow") {
  const Dtype dtype = GENERATE(f32, f64);
  const double huge = dtype == f32 ? 1e30 : 1e200;
  const Found found = found_by(gelu, tensor({-huge, -24, 24, huge, std::nan("")}, dtype), false);
  for (const std::size_t low : {0, 1}) {
    CHECK(found.value[low] == 0);
    CHECK(found.slope[low] == 0);
  }
  CHECK(found.value[2] == 24);
  CHECK(found.value[3] == Approx(huge));
  CHECK(found.slope[2] == 1);
  CHECK(found.slope[3] == 1);
  CHECK(std::isnan(found.value[4]));
  CHECK(std::isnan(found.slope[4]));
}

TEST_CASE("GELU's second derivative keeps its digits in the tail, as its value and slope do") {
  const Dtype dtype = GENERATE(f32, f64);
  const double digits = dtype == f32 ? 2e-6 : 4e-15;
  Tensor x = tensor({-13, -9.5, -8, -6, -5.5, 5.5, 9.5}, dtype).set_requires_grad();
  for (const bool with_tanh : {false, true}) {
    for (const auto f : {gelu, reference::gelu}) {
      const Tensor y = f(x, {.tanh = with_tanh});
      const Tensor u = ones(x.shape(), dtype);
      const Tensor slope = grad({y}, {x}, {.gradients = {u}, .create_graph = true})[0];
      const std::vector<double> second = grad({slope}, {x}, {.gradients = {u}})[0].to_vector();
      std::size_t i = 0;
      for (const double v : x.to_vector()) {
        const long double a = v, c = std::sqrt(8 / 3.14159265358979323846264338L), cubic = 0.044715L * c;
        const long double e = std::exp(-std::abs(c * a + cubic * a * a * a)), s = e / ((1 + e) * (1 + e));
        const long double u1 = c + 3 * cubic * a * a, u2 = 6 * cubic * a, sign = v < 0 ? -1 : 1;
        const long double second_by_tanh = s * (2 * u1 + a * u2 - a * u1 * u1 * sign * (1 - e) / (1 + e));
        const long double exact = std::exp(-a * a / 2) * (2 - a * a) * 0.398942280401432677939946L;
        const long double formula = with_tanh ? second_by_tanh : exact;
        const double expected = dtype == f32 ? static_cast<float>(formula) : static_cast<double>(formula);
        INFO("x " << v << ", tanh " << with_tanh << ", the reference form: " << (f == reference::gelu));
        // The reference form with tanh computes its argument with the digits of the dtype.
        if (!(with_tanh && f == reference::gelu))
          CHECK(second[i] == Approx(expected).epsilon(digits).margin(0));
        ++i;
      }
    }
  }
}
