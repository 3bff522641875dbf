// An op whose value and gradient come from outside the library, where ops can't follow.
//
//   log_gamma(x) = log |Gamma(x)|,   d log_gamma / dx = digamma(x)

#include <fmt/core.h>

#include <cmath>

#include "fovea/fovea.h"

namespace {

// For x > 0: the recurrence digamma(x) = digamma(x + 1) - 1/x, then the asymptotic series (Abramowitz &
// Stegun 6.3.18). It stands for a function of some other library.
double digamma(double x) {
  double shift = 0;
  for (; x < 10; ++x) shift -= 1 / x;
  const double s = 1 / (x * x);
  return shift + std::log(x) - 0.5 / x - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s / 240)));
}

template <class F>
fovea::Tensor map(const fovea::Tensor& x, const F& f) {
  std::vector<double> values = x.to_vector();
  for (double& value : values) value = f(value);
  return fovea::from_values(values, x.shape(), x.dtype());
}

// [op]
fovea::Tensor log_gamma(const fovea::Tensor& x) {
  const fovea::Tensor value = map(x, [](double v) { return std::lgamma(v); });
  // The rule computes digamma outside ops, so its result is right but can't be differentiated again:
  // `record_once` makes that an error, where `record` would give zeros.
  return fovea::record_once(
      "log_gamma", value, {x}, {x},
      [](const fovea::Saved& saved, const fovea::Tensor& dy,
         const fovea::NeedsGradient&) -> fovea::Gradients { return {dy * map(saved[0], digamma)}; });
}
// [op]

}  // namespace

int main() {
  fovea::Rng rng(7);
  const fovea::Tensor x = fovea::uniform({3, 5}, rng, 0.5, 4);
  const auto report = fovea::gradcheck(log_gamma, {{"x", x}});
  fmt::print("{}\n", report);
  if (!report.passed()) return 1;

  try {
    fovea::hessian([](const fovea::Tensor& v) { return fovea::sum(log_gamma(v)); }, x);
  } catch (const fovea::GraphError& error) {
    fmt::print("{}\n", error.what());
    return 0;
  }
  return 1;
}
