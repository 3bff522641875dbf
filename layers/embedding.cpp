#include "fovea/layers/embedding.h"

#include "fovea/autograd/ops.h"
#include "layers/init.h"

namespace fovea {

Embedding::Embedding(std::int64_t vocabulary, std::int64_t d_model, Rng& rng) {
  check_sizes("Embedding", {vocabulary, d_model});
  table = parameter(randn({vocabulary, d_model}, rng));
}

Tensor Embedding::operator()(const Indices& ids) const { return embedding(table, ids); }

}  // namespace fovea
