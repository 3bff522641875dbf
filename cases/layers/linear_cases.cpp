#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/linear.h"

namespace fovea {

void add_linear_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  cases.add("Linear", Linear(5, 3, rng), randn({2, 7, 5}, rng));
  cases.add("Linear, without a bias", Linear(5, 3, rng, {.bias = false}), randn({7, 5}, rng));
}

}  // namespace fovea
