#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/rotary.h"

namespace fovea {

void add_rotary_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  cases.add("Rotary, halves", Rotary(2), randn({2, 3, 5, 2}, rng));
  cases.add("Rotary, adjacent", Rotary(6, {.layout = RotaryLayout::adjacent}), randn({2, 3, 6}, rng));
}

}  // namespace fovea
