#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"

namespace fovea {

Attention self_attention(const Tensor& x, const Tensor& Wq, const Tensor& Wk, const Tensor& Wv,
                         const Tensor& Wo, const Mask& mask) {
  if (x.rank() != 2 && x.rank() != 3) {
    fail<ShapeError>("[self_attention] expects x (B, T, C) or (T, C), and got {}", to_string(x.shape()));
  }
  const std::int64_t batch = x.rank() == 3 ? x.size(0) : 1;
  const std::int64_t time = x.size(-2);
  const auto one_head = [&](const Tensor& W) { return reshape(linear(x, W), {batch, 1, time, W.size(1)}); };
  const Attention heads = attention_with_weights(one_head(Wq), one_head(Wk), one_head(Wv), {.mask = mask});

  Shape out = x.shape();
  out.back() = Wv.size(1);
  Shape map = x.shape();
  map.back() = time;
  return {linear(reshape(heads.output, out), Wo), reshape(heads.weights, map)};
}

}  // namespace fovea
