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
