#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/embedding.h"

namespace fovea {

void add_embedding_cases(LayerCases& cases) {
  const Indices ids{{2, 0, 4}, {4, 1, 3}};
  cases.add("Embedding", Embedding(5, 3, cases.rng), ids);
  cases.add("Embedding, with a padding id", Embedding(5, 3, cases.rng, {.padding = 4}), ids);
}

}  // namespace fovea
