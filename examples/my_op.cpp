// Ops with gradient rules of their own, defined outside the library, and checked.
//
//   softsign(x) = x / (1 + |x|),     d softsign / dx = 1 / (1 + |x|)^2
//   softplus(x) = log(1 + exp(x)),   d softplus / dx = sigmoid(x)

#include <fmt/core.h>

#include <cmath>

#include "fovea/fovea.h"

// [elementwise]
fovea::Tensor softsign(const fovea::Tensor& x) {
  return fovea::elementwise(
      "softsign", x, [](auto v) { return v / (1 + std::abs(v)); },
      [](const fovea::Tensor& x) { return 1.0 / pow(1.0 + abs(x), 2); });
}
// [elementwise]

// [op]
fovea::Tensor softplus(const fovea::Tensor& x) {
  // The value may be computed in any way. Here: a loop over a copy in row-major order, in the type of x.
  const fovea::Tensor input = fovea::contiguous(x.detach());
  fovea::Tensor value = fovea::empty(x.shape(), x.dtype());
  fovea::dispatch(x.dtype(), [&]<class T>() {
    const T* in = input.data<T>();
    T* out = value.mutable_data<T>();
    for (std::int64_t i = 0; i < value.numel(); ++i)
      out[i] = std::max(in[i], T(0)) + std::log1p(std::exp(-std::abs(in[i])));
  });
  // The rule is written with ops, so the gradient can itself be differentiated. It uses what is saved, x.
  return fovea::record(
      "softplus", value, {x}, {x},
      [](const fovea::Saved& saved, const fovea::Tensor& dy,
         const fovea::NeedsGradient&) -> fovea::Gradients { return {dy * fovea::sigmoid(saved[0])}; });
}
// [op]

int main() {
  fovea::Rng rng(7);
  const fovea::Tensor x = 3.0 * fovea::randn({3, 5}, rng);

  // [check]
  for (const int order : {1, 2}) {
    const auto report = fovea::gradcheck(softplus, {{"x", x}}, {.order = order});
    fmt::print("{}\n", report);
    if (!report.passed()) return 1;
  }
  // [check]
  return fovea::gradcheck(softsign, {{"x", x}}, {.order = 2}) ? 0 : 1;
}
