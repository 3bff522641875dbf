#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/positions.h"

namespace fovea {

void add_positions_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  const Tensor x = randn({2, 3, 5}, rng);
  cases.add("SineCosinePositions", SineCosinePositions(5), x);
  cases.add("LearnedPositions", LearnedPositions(3, 5, rng), x);
  cases.add("PositionEmbedding, learned", PositionEmbedding(Positions::learned, 3, 5, rng), x);
  cases.add("PositionEmbedding, sine-cosine", PositionEmbedding(Positions::sine_cosine, 3, 5, rng), x);
  cases.add("PositionEmbedding, none", PositionEmbedding(Positions::none, 3, 5, rng), x);
}

}  // namespace fovea
