#include "cases/accuracy.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "autograd/base/non_finite.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

// Zeros, the smallest and largest numbers of T, infinities and NaN, and arguments in the tails of functions.
template <class T>
std::vector<double> special_arguments() {
  using Limits = std::numeric_limits<T>;
  std::vector<double> x{nan};
  for (const double magnitude : {0.0,
                                 double{Limits::denorm_min()},
                                 double{Limits::min()} / 3,
                                 double{Limits::min()},
                                 1e-9,
                                 1e-3,
                                 0.03,
                                 0.4,
                                 1.5,
                                 5.5,
                                 6.0,
                                 8.3,
                                 13.2,
                                 20.7,
                                 35.0,
                                 88.9,
                                 89.8,
                                 103.0,
                                 700.5,
                                 745.0,
                                 1e5,
                                 double{Limits::max()},
                                 infinity}) {
    x.push_back(static_cast<T>(magnitude));
    x.push_back(-static_cast<T>(magnitude));
  }
  return x;
}

// `allowed` is in ulp.
template <class T>
void check_close(const ElementwiseFunction& function, const char* what, const std::vector<double>& x,
                 const std::vector<double>& found, long double (*exact)(long double), double allowed) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(function.name << ", " << what << " at " << x[i] << " is " << found[i] << ", not " << exact(x[i]));
    CHECK(std::abs(ulps_between<T>(found[i], exact(x[i]))) <= allowed);
  }
}

template <class T>
void check_special_values(const ElementwiseFunction& function) {
  const std::vector<double> arguments = special_arguments<T>();
  Tensor x = from_values(arguments, {std::ssize(arguments)}, sizeof(T) == 4 ? f32 : f64).set_requires_grad();
  const Tensor y = function.of(x);
  check_close<T>(function, "value", arguments, y.to_vector(), function.long_value, 2);
  const Tensor ones_like = ones(x.shape(), x.dtype());
  for (const bool create_graph : {false, true}) {
    const Tensor slope =
        grad({y}, {x}, {.gradients = {ones_like}, .retain_graph = true, .create_graph = create_graph})[0];
    check_close<T>(function, create_graph ? "slope in the graph" : "slope", arguments, slope.to_vector(),
                   function.long_slope, 6);
  }
}

}  // namespace

TEST_CASE(
    "elementwise functions and their slopes are exact at zeros, denormals, infinities and in their tails") {
  for (const ElementwiseFunction& function : elementwise_functions()) {
    check_special_values<float>(function);
    check_special_values<double>(function);
  }
}

TEST_CASE("elementwise functions are within 2 ulp of the exact value, and right in the mean") {
  for (const ElementwiseFunction& function : elementwise_functions()) {
    for (const Accuracy& found : {accuracy_in_f32(function, 4099), accuracy_in_f64(function, 40'000)}) {
      INFO(function.name << ": " << found.worst << " ulp at " << found.worst_at);
      CHECK(found.worst <= 2);
      CHECK(std::abs(found.mean) < 0.1);
    }
  }
}

TEST_CASE("tanh of f32 has no bias between 0.01 and 0.2") {
  double total = 0;
  std::int64_t count = 0;
  const Tensor x = arange(100'003) * (0.19 / 100'003) + 0.01;
  const std::vector<double> at = x.to_vector(), y = tanh(x).to_vector();
  for (std::size_t i = 0; i < at.size(); ++i, ++count) {
    total += ulps_between<float>(y[i], std::tanh(static_cast<long double>(at[i])));
  }
  CHECK(std::abs(total / static_cast<double>(count)) < 0.05);
}

TEST_CASE("square roots are correctly rounded") {
  for (int i = 1; i < 2000; ++i) {
    const double square = double{1} * i * i;
    REQUIRE(sqrt(scalar(square, f64)).item() == i);
    REQUIRE(sqrt(scalar(square, f32)).item() == i);
  }
}

TEST_CASE("an element's value does not depend on its place in the array") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(17);
  const Tensor x = 3 * randn({101}, rng, dtype);
  for (const ElementwiseFunction& function : elementwise_functions()) {
    const std::vector<double> whole = function.of(x).to_vector();
    for (const std::int64_t begin : {1, 7, 83}) {
      const std::vector<double> part = function.of(slice(x, 0, begin, 100)).to_vector();
      const std::vector<double> spread = function.of(slice(x, 0, begin, 100, 3)).to_vector();
      INFO(function.name);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const double expected = whole[static_cast<std::size_t>(begin) + i];
        // NaN, as of the logarithm of a negative number, is found equal to NaN.
        CHECK((part[i] == expected || std::isnan(expected)));
        if (i % 3 == 0) CHECK((spread[i / 3] == expected || std::isnan(expected)));
      }
    }
  }
}

}  // namespace fovea
