#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/rms_norm.h"

namespace fovea {

void add_rms_norm_cases(LayerCases& cases) { cases.add("RmsNorm", RmsNorm(5), randn({2, 3, 5}, cases.rng)); }

}  // namespace fovea
