#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/activations.h"
#include "fovea/layers/dropout.h"
#include "fovea/layers/feed_forward.h"
#include "fovea/layers/kv_cache.h"
#include "fovea/layers/layer_norm.h"
#include "fovea/layers/multi_head_attention.h"
#include "fovea/layers/rms_norm.h"
#include "fovea/layers/visit.h"

namespace fovea {

enum class NormKind : std::uint8_t { layer, rms };
enum class NormPlace : std::uint8_t { pre, post };

/// Layers that a model's options choose between.
using Norm = std::variant<LayerNorm, RmsNorm>;
using Mlp = std::variant<FeedForward, SwiGlu>;

FOVEA_API Norm make_norm(NormKind kind, std::int64_t d_model);

/// The chosen layer of x.
template <Layer... Layers>
Tensor call(const std::variant<Layers...>& chosen, const Tensor& x) {
  return std::visit([&](const auto& layer) { return layer(x); }, chosen);
}

struct TransformerBlockOptions {
  MultiHeadAttentionOptions attention = {};
  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::pre;
  Activation activation = Activation::gelu;
  std::optional<std::int64_t> d_hidden = {};  ///< F; by default 4 C, or 8/3 C, as large, if it is gated
  bool swiglu = false;                        ///< a gated network without biases, instead of the activation
  bool bias = true;                           ///< of the feed-forward network
  double dropout = 0;  ///< of what attention and feed-forward add, in a `TrainMode` scope
};

/// A block of a transformer: attention, then a feed-forward network, each added to what comes in. With the
/// norm before (GPT-2; Xiong et al. 2020) or after (Vaswani et al. 2017):
///   pre:   h = x + attention(norm1(x)),     y = h + mlp(norm2(h)),
///   post:  h = norm1(x + attention(x)),     y = norm2(h + mlp(h)).
///
/// Shapes: x (B, T, C) -> the same. Throws: as MultiHeadAttention.
/// Taps: "input", "output" (B, T, C); also those of "attention" and "mlp".
struct FOVEA_API TransformerBlock {
  Norm norm1;
  MultiHeadAttention attention;
  Norm norm2;
  Mlp mlp;
  Dropout drop;
  NormPlace norm_place;

  TransformerBlock(std::int64_t d_model, std::int64_t heads, Rng& rng,
                   const TransformerBlockOptions& options = {});

  Tensor operator()(const Tensor& x, const Mask& mask = Mask::causal()) const;

  /// The next positions, with what the cache holds of those before: as MultiHeadAttention.
  Tensor operator()(const Tensor& x, KvCache& cache, const Mask& mask = Mask::causal()) const;

  /// Draws all weights anew: from N(0, std^2), and those whose product is added to x from N(0, added_std^2).
  void initialise(double std, double added_std, Rng& rng);

  static void visit(const TransformerBlock& self, Visitor& v) {
    v("norm1", self.norm1);
    v("attention", self.attention);
    v("norm2", self.norm2);
    v("mlp", self.mlp);
  }

 private:
  template <class Attend>
  Tensor run(const Tensor& input, const Attend& attend) const;
};

}  // namespace fovea
