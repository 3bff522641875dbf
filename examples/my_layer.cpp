// A new layer in one file. Its `visit` gives it named parameters, counts, printing, checkpoints, f64 copies
// and gradient checks.

#include <fmt/core.h>

#include "fovea/fovea.h"

using fovea::Tensor;

// [layer]
/// A gated linear unit (Dauphin et al. 2017): y = (x W + b) * sigmoid(x G).
///
/// Shapes: x (..., I) -> (..., O).
struct GatedLinear {
  fovea::Linear linear;
  Tensor G;  ///< (I, O)

  GatedLinear(std::int64_t in, std::int64_t out, fovea::Rng& rng)
      : linear(in, out, rng), G(fovea::parameter(0.3 * fovea::randn({in, out}, rng))) {}

  Tensor operator()(const Tensor& x) const { return linear(x) * sigmoid(matmul(x, G)); }

  static void visit(const GatedLinear& self, fovea::Visitor& v) {
    v("linear", self.linear);
    v("G", self.G);
  }
};
// [layer]

int main() {
  fovea::Rng rng(7);
  const GatedLinear layer(5, 3, rng);
  fmt::print("{}\n\n", layer);

  // [check]
  const auto report = fovea::gradcheck(layer, fovea::randn({2, 7, 5}, rng));
  fmt::print("{}\n", to_string(report));
  // [check]
  return report.passed() ? 0 : 1;
}
