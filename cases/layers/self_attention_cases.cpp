#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/self_attention.h"

namespace fovea {

void add_self_attention_cases(LayerCases& cases) {
  cases.add("SelfAttention", SelfAttention(5, 3, cases.rng), randn({2, 7, 5}, cases.rng));
}

}  // namespace fovea
