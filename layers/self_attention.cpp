#include "fovea/layers/self_attention.h"

#include "fovea/layers/tap.h"
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
  if (x.rank() != 2 && x.rank() != 3) {
    fail<ShapeError>("[SelfAttention] expects x (B, T, C) or (T, C), and got {}", to_string(x.shape()));
  }
  const std::int64_t batch = x.rank() == 3 ? x.size(0) : 1, time = x.size(-2);
  const auto one_head = [&](const Tensor& W) { return reshape(linear(x, W), {batch, 1, time, W.size(1)}); };
  const AttentionOptions options{.mask = mask};
  const Tensor scores = tap(this, "scores", attention_scores(one_head(Wq), one_head(Wk), options));
  const Tensor weights = tap(this, "weights", attention_softmax(scores));
  const Tensor values = attention_output(weights, one_head(Wv), options);

  const auto as_x = [&](const Tensor& of_head) {
    Shape shape = x.shape();
    shape.back() = of_head.size(-1);
    return reshape(of_head, shape);
  };
  return {linear(as_x(values), Wo), as_x(weights)};
}

}  // namespace fovea
