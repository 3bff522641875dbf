#include "fovea/layers/linear.h"

#include "fovea/autograd/ops.h"
#include "layers/init.h"

namespace fovea {

Linear::Linear(std::int64_t in, std::int64_t out, Rng& rng, const LinearOptions& options) {
  check_sizes("Linear", {in, out});
  W = uniform_weight(in, out, rng);
  if (options.bias) b = parameter(zeros({out}));
}

Tensor Linear::operator()(const Tensor& x) const { return linear(x, W, b); }

}  // namespace fovea
