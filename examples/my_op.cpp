// An op with a gradient rule of its own, defined outside the library, and checked.
//
//   softplus(x) = log(1 + exp(x)),   d softplus / dx = sigmoid(x)

#include <fmt/core.h>

#include <cmath>

#include "fovea/fovea.h"

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
  return 0;
}
