#include "layers/cases.h"

#include "fovea/autograd/ops.h"
#include "fovea/autograd/rng.h"
#include "fovea/layers/embedding.h"
#include "fovea/layers/layer_norm.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/one_head_model.h"
#include "fovea/layers/positions.h"
#include "fovea/layers/self_attention.h"

namespace fovea {

std::vector<LayerCase> layer_cases() {
  Rng rng(1);
  LayerCases cases;
  cases.add("Linear", Linear(5, 3, rng), randn({2, 7, 5}, rng));
  cases.add("Linear, without a bias", Linear(5, 3, rng, {.bias = false}), randn({7, 5}, rng));
  cases.add("Embedding", Embedding(5, 3, rng), Indices{{2, 0, 4}, {4, 1, 3}});
  cases.add("LayerNorm", LayerNorm(5), randn({2, 3, 5}, rng));
  cases.add("SineCosinePositions", SineCosinePositions(5), randn({2, 3, 5}, rng));
  cases.add("LearnedPositions", LearnedPositions(3, 5, rng), randn({2, 3, 5}, rng));
  cases.add("SelfAttention", SelfAttention(5, 3, rng), randn({2, 7, 5}, rng));
  cases.add("OneHeadModel", OneHeadModel(7, 5, rng), Indices{{2, 0, 4}, {6, 1, 3}});
  return std::move(cases.rows);
}

}  // namespace fovea
