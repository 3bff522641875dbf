#include "fovea/layers/one_head_model.h"

#include <cmath>

#include "fovea/autograd/ops.h"

namespace fovea {

OneHeadModel::OneHeadModel(std::int64_t vocabulary, std::int64_t d_model, Rng& rng)
    : embedding(vocabulary, d_model, rng),
      positions(d_model),
      attention(d_model, d_model, rng),
      output(d_model, vocabulary, rng) {
  // Embeddings start smaller than the positions that are added to them, and projections keep the variance of
  // their input: so the head learns where to look with every seed.
  const auto scale = [](Tensor& weight, double factor) { weight = parameter(weight.detach() * factor); };
  scale(embedding.table, 0.4);
  for (Tensor* W : {&attention.Wq, &attention.Wk, &attention.Wv, &attention.Wo}) scale(*W, std::sqrt(3.0));
}

Tensor OneHeadModel::operator()(const Indices& ids, const Mask& mask) const {
  const Tensor x = positions(embedding(ids));
  return output(x + attention(x, mask));
}

OneHeadModel::Prediction OneHeadModel::with_weights(const Indices& ids, const Mask& mask) const {
  const Tensor x = positions(embedding(ids));
  const Attention attended = attention.with_weights(x, mask);
  return {output(x + attended.output), attended.weights};
}

}  // namespace fovea
