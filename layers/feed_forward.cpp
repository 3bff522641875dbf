#include "fovea/layers/feed_forward.h"

#include "fovea/autograd/ops.h"
#include "fovea/layers/tap.h"
#include "layers/init.h"

namespace fovea {

Tensor activate(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu(x, {.tanh = true});
    case Activation::silu:
      return silu(x);
    case Activation::relu:
      return relu(x);
  }
  fail<ValueError>("[activate] there is no activation {}", static_cast<int>(activation));
}

FeedForward::FeedForward(std::int64_t d_model, std::int64_t d_hidden, Rng& rng,
                         const FeedForwardOptions& options)
    : up(d_model, d_hidden, rng, {.bias = options.bias}),
      down(d_hidden, d_model, rng, {.bias = options.bias}),
      activation(options.activation) {}

Tensor FeedForward::operator()(const Tensor& x) const {
  return down(tap(this, "hidden", activate(activation, up(x))));
}

GatedFeedForward::GatedFeedForward(std::int64_t d_model, std::int64_t d_hidden, Rng& rng,
                                   const GatedFeedForwardOptions& options)
    : activation(options.activation) {
  check_sizes("GatedFeedForward", {d_model, d_hidden});
  W1 = uniform_weight(d_model, d_hidden, rng);
  W3 = uniform_weight(d_model, d_hidden, rng);
  W2 = uniform_weight(d_hidden, d_model, rng);
}

Tensor GatedFeedForward::operator()(const Tensor& x) const {
  return matmul(tap(this, "hidden", activate(activation, matmul(x, W1)) * matmul(x, W3)), W2);
}

}  // namespace fovea
