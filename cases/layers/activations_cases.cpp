#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/activations.h"

namespace fovea {

void add_activations_cases(LayerCases& cases) {
  const Tensor x = randn({3, 5}, cases.rng);
  cases.add("Gelu", Gelu{}, x);
  cases.add("Gelu, tanh approximation", Gelu{.tanh = true}, x);
  cases.add("Silu", Silu{}, x);
  cases.add("Relu", Relu{}, x);
}

}  // namespace fovea
