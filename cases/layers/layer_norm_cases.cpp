#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/layer_norm.h"

namespace fovea {

void add_layer_norm_cases(LayerCases& cases) {
  cases.add("LayerNorm", LayerNorm(5), randn({2, 3, 5}, cases.rng));
}

}  // namespace fovea
