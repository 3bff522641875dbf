#include "cases/layer_cases.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/ops/attention.h"
#include "fovea/layers/relative_bias.h"

namespace fovea {
namespace {

// Attention with a bias by distance, whose gradient arrives through the scores. x (B, H, T, D) holds the
// queries, the keys and the values.
template <Layer L>
struct BiasedAttention {
  L bias;

  Tensor operator()(const Tensor& x) const {
    if constexpr (std::same_as<L, Alibi>) {
      return attention(x, x, x, {.relative_bias = bias(x.size(2), x.size(2), x.dtype())});
    } else {
      return attention(x, x, x, {.mask = Mask::causal(), .relative_bias = bias(x.size(2), x.size(2))});
    }
  }
  static void visit(const BiasedAttention& self, Visitor& v) { v("bias", self.bias); }
};

}  // namespace

void add_relative_bias_cases(LayerCases& cases) {
  Rng& rng = cases.rng;
  const Tensor x = randn({2, 3, 5, 2}, rng);
  cases.add("RelativeBias, in attention",
            BiasedAttention<RelativeBias>{RelativeBias(3, rng, {.buckets = 4, .max_distance = 5})}, x);
  cases.add("Alibi, in attention", BiasedAttention<Alibi>{Alibi(3)}, x);
}

}  // namespace fovea
