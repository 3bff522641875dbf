#include "fovea/train/optimizers/clip.h"

#include <cmath>
#include <limits>

#include "fovea/autograd/base/error.h"
#include "fovea/layers/visit.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("clip_gradients: returns the norm of all gradients before clipping", "[train]") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor a = parameter(zeros({2}, dtype));
  const Tensor b = parameter(zeros({1, 1}, dtype));
  const Tensor without = parameter(zeros({5}, dtype));
  const std::vector<NamedTensor> all{{"a", a}, {"without", without}, {"b", b}};
  a.set_grad(tensor({2, 3}, dtype));
  b.set_grad(full({1, 1}, -6, dtype));

  CHECK(clip_gradients(all, 7.5) == 7);
  CHECK(clip_gradients(all, infinity) == 7);
  CHECK(a.grad().to_vector() == std::vector<double>{2, 3});
  CHECK(clip_gradients(all, 3.5) == 7);
  CHECK(a.grad().to_vector() == std::vector<double>{1, 1.5});
  CHECK(b.grad().item() == -3);
  CHECK_FALSE(without.grad().defined());
  CHECK(clip_gradients(all, 0) == 3.5);
  CHECK(b.grad().item() == 0);
  CHECK(clip_gradients(all, 0) == 0);
  CHECK(clip_gradients({}, 1) == 0);
}

TEST_CASE("clip_gradients: squares outside the range of the dtype", "[train]") {
  SECTION("100 elements of 1e20 in f32, clipped to 1") {
    const Tensor p = parameter(zeros({100}));
    p.set_grad(full({100}, 1e20));
    CHECK(clip_gradients({{"p", p}}, 1) == Approx(1e21).epsilon(1e-7));
    for (const double value : p.grad().to_vector()) CHECK(value == Approx(0.1).epsilon(1e-7));
  }
  SECTION("a factor too small for f32") {
    const Tensor p = parameter(zeros({10'000}));
    p.set_grad(full({10'000}, 1e38));
    CHECK(clip_gradients({{"p", p}}, 1) == Approx(1e40).epsilon(1e-7));
    CHECK(p.grad().at({7}) == Approx(0.01).epsilon(1e-7));
  }
  SECTION("the smallest positive f64") {
    const Tensor p = parameter(zeros({2}, f64));
    p.set_grad(tensor({0, 5e-324}, f64));
    CHECK(clip_gradients({{"p", p}}, 1) == 5e-324);
  }
  SECTION("large and small in f64") {
    const double scale = GENERATE(1e300, 1e-300, 1e-308);
    const Tensor p = parameter(zeros({2}, f64));
    p.set_grad(tensor({3 * scale, 4 * scale}, f64));
    CHECK(clip_gradients({{"p", p}}, infinity) == Approx(5 * scale).epsilon(1e-12).margin(0));
  }
  SECTION("a norm that overflows f64") {
    const Tensor p = parameter(zeros({2}, f64));
    p.set_grad(full({2}, 1.7e308, f64));
    CHECK_THROWS_AS(clip_gradients({{"p", p}}, 1), NonFiniteError);
    CHECK(p.grad().at({0}) == 1.7e308);
  }
}

TEST_CASE("clip_gradients: a norm that is not finite names the parameter and changes nothing", "[train]") {
  const double bad = GENERATE(as<double>(), nan, infinity, -infinity);
  const Tensor a = parameter(zeros({2}));
  const Tensor b = parameter(zeros({3, 5}));
  const Tensor c = parameter(zeros({2}));
  a.set_grad(tensor({30, 40}));
  Tensor gradient = zeros({3, 5});
  gradient.mutable_data<float>()[7] = static_cast<float>(bad);
  b.set_grad(gradient);
  c.set_grad(full({2}, bad));
  const std::vector<NamedTensor> all{{"a", a}, {"b", b}, {"c", c}};
  CHECK_THROWS_AS(clip_gradients(all, 1), NonFiniteError);
  CHECK_THROWS_WITH(clip_gradients(all, 1), ContainsSubstring("the gradient of 'b', shape (3, 5)"));
  CHECK(a.grad().to_vector() == std::vector<double>{30, 40});
}

TEST_CASE("clip_gradients: a negative or NaN max_norm is an error", "[train]") {
  const Tensor p = parameter(zeros({2}));
  p.set_grad(tensor({3, 4}));
  CHECK_THROWS_AS(clip_gradients({{"p", p}}, -1), ValueError);
  CHECK_THROWS_AS(clip_gradients({{"p", p}}, nan), ValueError);
  CHECK(p.grad().to_vector() == std::vector<double>{3, 4});
}

TEST_CASE("clip_gradients: gradients that share an array are each clipped once", "[train]") {
  const Tensor a = parameter(zeros({2}));
  const Tensor b = parameter(zeros({2}));
  const Tensor shared = tensor({3, 4});
  a.set_grad(shared);
  b.set_grad(shared);
  CHECK(clip_gradients({{"a", a}, {"b", b}}, std::sqrt(50) / 2) == Approx(std::sqrt(50)));
  CHECK(a.grad().at({0}) == Approx(1.5));
  CHECK(b.grad().at({1}) == Approx(2));
  CHECK(shared.to_vector() == std::vector<double>{3, 4});
}

}  // namespace
}  // namespace fovea
