#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/one_head_model.h"

namespace fovea {

void add_one_head_model_cases(LayerCases& cases) {
  cases.add("OneHeadModel", OneHeadModel(7, 5, cases.rng), Indices{{2, 0, 4}, {6, 1, 3}});
}

}  // namespace fovea
