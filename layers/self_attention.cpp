#include "fovea/layers/self_attention.h"

#include "layers/init.h"

namespace fovea {

SelfAttention::SelfAttention(std::int64_t d_model, std::int64_t d_k, Rng& rng) {
  check_sizes("SelfAttention", {d_model, d_k});
  Wq = uniform_weight(d_model, d_k, rng);
  Wk = uniform_weight(d_model, d_k, rng);
  Wv = uniform_weight(d_model, d_k, rng);
  Wo = uniform_weight(d_k, d_model, rng);
}

Tensor SelfAttention::operator()(const Tensor& x, const Mask& mask) const {
  return with_weights(x, mask).output;
}

Attention SelfAttention::with_weights(const Tensor& x, const Mask& mask) const {
  return self_attention(x, Wq, Wk, Wv, Wo, mask);
}

}  // namespace fovea
