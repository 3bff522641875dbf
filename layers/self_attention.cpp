#include "fovea/layers/self_attention.h"

#include "autograd/ops/self_attention.h"
#include "layers/init.h"
#include "layers/tapped_attention.h"

namespace fovea {

SelfAttention::SelfAttention(std::int64_t d_model, std::int64_t d_k, Rng& rng) {
  check_sizes("SelfAttention", {d_model, d_k});
  Wq = uniform_weight(d_model, d_k, rng);
  Wk = uniform_weight(d_model, d_k, rng);
  Wv = uniform_weight(d_model, d_k, rng);
  Wo = uniform_weight(d_k, d_model, rng);
}

Tensor SelfAttention::operator()(const Tensor& x, const Mask& mask) const {
  return attended(x, mask, false).output;
}

Attention SelfAttention::with_weights(const Tensor& x, const Mask& mask) const {
  return attended(x, mask, true);
}

Attention SelfAttention::attended(const Tensor& x, const Mask& mask, bool with_weights) const {
  return detail::self_attention("SelfAttention", x, Wq, Wk, Wv, Wo,
                                [&](const Tensor& q, const Tensor& k, const Tensor& v) {
                                  return tapped_attention(this, q, k, v, {.mask = mask}, with_weights);
                                });
}

}  // namespace fovea
