#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/feed_forward.h"

namespace fovea {

void add_feed_forward_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  const Tensor x = randn({2, 3, 5}, rng);
  cases.add("FeedForward", FeedForward(5, 7, rng), x);
  cases.add("FeedForward, relu without bias",
            FeedForward(5, 7, rng, {.activation = Activation::relu, .bias = false}), x);
  cases.add("GatedFeedForward, SwiGLU", GatedFeedForward(5, 7, rng), x);
  cases.add("GatedFeedForward, GEGLU", GatedFeedForward(5, 7, rng, {.activation = Activation::gelu}), x);
}

}  // namespace fovea
