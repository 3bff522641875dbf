#include "cases/layer_cases.h"
#include "cases/layers/in_training.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/dropout.h"

namespace fovea {

void add_dropout_cases(LayerCases& cases) {
  const Tensor x = randn({3, 5}, cases.rng);
  cases.add("Dropout", Dropout(0.3), x);
  cases.add("Dropout, in training", InTraining<Dropout>{Dropout(0.3)}, x);
}

}  // namespace fovea
