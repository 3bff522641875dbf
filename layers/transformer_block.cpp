#include "fovea/layers/transformer_block.h"

#include "fovea/autograd/ops.h"
#include "fovea/layers/tap.h"
#include "layers/model.h"

namespace fovea {
namespace {

FeedForward make_feed_forward(std::int64_t d_model, Activation activation, Rng& rng,
                              const TransformerBlockOptions& options) {
  return FeedForward(d_model, hidden_size(d_model, options), rng,
                     {.activation = activation, .bias = options.mlp_bias});
}

GatedFeedForward make_gated(std::int64_t d_model, Activation activation, Rng& rng,
                            const TransformerBlockOptions& options) {
  return GatedFeedForward(d_model, hidden_size(d_model, options), rng, {.activation = activation});
}

std::optional<Mlp> make_mlp(std::int64_t d_model, Rng& rng, const TransformerBlockOptions& options) {
  switch (options.mlp) {
    case MlpKind::gelu:
      return make_feed_forward(d_model, Activation::gelu, rng, options);
    case MlpKind::gelu_tanh:
      return make_feed_forward(d_model, Activation::gelu_tanh, rng, options);
    case MlpKind::relu:
      return make_feed_forward(d_model, Activation::relu, rng, options);
    case MlpKind::silu:
      return make_feed_forward(d_model, Activation::silu, rng, options);
    case MlpKind::swiglu:
      return make_gated(d_model, Activation::silu, rng, options);
    case MlpKind::geglu:
      return make_gated(d_model, Activation::gelu, rng, options);
    case MlpKind::none:
      break;
  }
  return std::nullopt;
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
      mlp(make_mlp(d_model, rng, options)),
      drop(options.dropout),
      norm_place(options.norm_place) {
  if (mlp) norm2 = make_norm(options.norm, d_model);
}

template <class Attend>
Tensor TransformerBlock::run(const Tensor& input, const Attend& attend) const {
  // One half of the block: a sublayer with its norm, added to its input.
  const auto add = [&](const Tensor& x, const Norm& norm, const auto& sublayer) {
    if (norm_place == NormPlace::pre) return x + drop(sublayer(call(norm, x)));
    return call(norm, x + drop(sublayer(x)));
  };
  Tensor x = add(tap(this, "input", input), norm1, attend);
  if (mlp) x = add(x, *norm2, [&](const Tensor& h) { return call(*mlp, h); });
  return tap(this, "output", x);
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
  if (!mlp) return;
  if (auto* gated = std::get_if<GatedFeedForward>(&*mlp)) {
    for (Tensor* W : {&gated->W1, &gated->W3}) *W = normal_weight(W->shape(), std, rng);
    gated->W2 = normal_weight(gated->W2.shape(), added_std, rng);
  } else {
    auto& [up, down, activation] = std::get<FeedForward>(*mlp);
    up.W = normal_weight(up.W.shape(), std, rng);
    down.W = normal_weight(down.W.shape(), added_std, rng);
  }
}

}  // namespace fovea
