#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/activations.h"
#include "fovea/layers/layer_norm.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/sequential.h"

namespace fovea {

void add_sequential_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  cases.add("Sequential", Sequential(Linear(5, 7, rng), Gelu{}, LayerNorm(7), Linear(7, 3, rng)),
            randn({2, 3, 5}, rng));
}

}  // namespace fovea
