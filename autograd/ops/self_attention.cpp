#include "autograd/ops/self_attention.h"

namespace fovea {

Attention self_attention(const Tensor& x, const Tensor& Wq, const Tensor& Wk, const Tensor& Wv,
                         const Tensor& Wo, const Mask& mask) {
  return detail::self_attention("self_attention", x, Wq, Wk, Wv, Wo,
                                [&](const Tensor& q, const Tensor& k, const Tensor& v) {
                                  return attention_with_weights(q, k, v, {.mask = mask});
                                });
}

}  // namespace fovea
