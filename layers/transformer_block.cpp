#include "fovea/layers/transformer_block.h"

#include "fovea/autograd/ops.h"
#include "fovea/layers/tap.h"
#include "layers/init.h"

namespace fovea {
namespace {

Mlp make_mlp(std::int64_t d_model, const TransformerBlockOptions& options, Rng& rng) {
  if (options.swiglu) return SwiGlu(d_model, options.d_hidden.value_or(8 * d_model / 3), rng);
  return FeedForward(d_model, options.d_hidden.value_or(4 * d_model), rng,
                     {.activation = options.activation, .bias = options.bias});
}

}  // namespace

Norm make_norm(NormKind kind, std::int64_t d_model) {
  if (kind == NormKind::rms) return RmsNorm(d_model);
  return LayerNorm(d_model);
}

TransformerBlock::TransformerBlock(std::int64_t d_model, std::int64_t heads, Rng& rng,
                                   const TransformerBlockOptions& options)
    : norm1(make_norm(options.norm, d_model)),
      attention(d_model, heads, rng, options.attention),
      norm2(make_norm(options.norm, d_model)),
      mlp(make_mlp(d_model, options, rng)),
      drop(options.dropout),
      norm_place(options.norm_place) {}

template <class Attend>
Tensor TransformerBlock::run(const Tensor& input, const Attend& attend) const {
  const Tensor x = tap(this, "input", input);
  if (norm_place == NormPlace::pre) {
    const Tensor h = x + drop(attend(call(norm1, x)));
    return tap(this, "output", h + drop(call(mlp, call(norm2, h))));
  }
  const Tensor h = call(norm1, x + drop(attend(x)));
  return tap(this, "output", call(norm2, h + drop(call(mlp, h))));
}

Tensor TransformerBlock::operator()(const Tensor& x, const Mask& mask) const {
  return run(x, [&](const Tensor& h) { return attention(h, mask); });
}

Tensor TransformerBlock::operator()(const Tensor& x, KvCache& cache, const Mask& mask) const {
  return run(x, [&](const Tensor& h) { return attention(h, cache, mask); });
}

void TransformerBlock::initialise(double std, double added_std, Rng& rng) {
  for (Tensor* W : {&attention.Wq, &attention.Wk, &attention.Wv}) *W = normal_weight(W->shape(), std, rng);
  attention.Wo = normal_weight(attention.Wo.shape(), added_std, rng);
  if (auto* gated = std::get_if<SwiGlu>(&mlp)) {
    for (Tensor* W : {&gated->W1, &gated->W3}) *W = normal_weight(W->shape(), std, rng);
    gated->W2 = normal_weight(gated->W2.shape(), added_std, rng);
  } else {
    auto& [up, down, activation] = std::get<FeedForward>(mlp);
    up.W = normal_weight(up.W.shape(), std, rng);
    down.W = normal_weight(down.W.shape(), added_std, rng);
  }
}

}  // namespace fovea
