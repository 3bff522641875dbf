#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/dropout.h"
#include "fovea/layers/feed_forward.h"
#include "fovea/layers/kv_cache.h"
#include "fovea/layers/layer_norm.h"
#include "fovea/layers/multi_head_attention.h"
#include "fovea/layers/rms_norm.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// Which normalization a model uses: LayerNorm or RmsNorm.
enum class NormKind : std::uint8_t { layer, rms };

/// Where the norms of a block stand: before attention and MLP (GPT-2; Xiong et al. 2020), or after each
/// residual addition (Vaswani et al. 2017).
enum class NormPlace : std::uint8_t { pre, post };

/// The kind of a block's MLP: a FeedForward with one of four activations, a GatedFeedForward (swiglu, geglu),
/// or none, which leaves an attention-only model (Elhage et al. 2021).
enum class MlpKind : std::uint8_t { gelu, gelu_tanh, relu, silu, swiglu, geglu, none };

using Norm = std::variant<LayerNorm, RmsNorm>;
using Mlp = std::variant<FeedForward, GatedFeedForward>;

FOVEA_API Norm make_norm(NormKind kind, std::int64_t d_model);

/// Calls whichever layer the variant holds.
template <Layer... Layers>
Tensor call(const std::variant<Layers...>& layer, const Tensor& x) {
  return std::visit([&](const auto& held) { return held(x); }, layer);
}

struct TransformerBlockOptions {
  MultiHeadAttentionOptions attention = {};
  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::pre;
  MlpKind mlp = MlpKind::gelu;
  std::optional<std::int64_t> d_hidden = {};  ///< F of the MLP; 4 C by default, or 8/3 C where it is gated
  bool mlp_bias = true;                       ///< biases in the MLP; gated ones have none
  double dropout = 0;                         ///< of what attention and MLP add to x, in a `TrainMode` scope
};

/// A transformer block: attention, then an MLP, each added to its input. With the norms before or after:
///   pre:   h = x + attention(norm1(x)),     y = h + mlp(norm2(h)),
///   post:  h = norm1(x + attention(x)),     y = norm2(h + mlp(h)).
/// With MlpKind::none, y = h.
///
/// Shapes: x (B, T, C) -> the same. Throws: as MultiHeadAttention.
/// Taps: "input", "output" (B, T, C); also those of "attention" and "mlp".
struct FOVEA_API TransformerBlock {
  Norm norm1;
  MultiHeadAttention attention;
  std::optional<Norm> norm2;  ///< empty with MlpKind::none
  std::optional<Mlp> mlp;     ///< empty with MlpKind::none
  Dropout drop;
  NormPlace norm_place;

  TransformerBlock(std::int64_t d_model, std::int64_t heads, Rng& rng,
                   const TransformerBlockOptions& options = {});

  Tensor operator()(const Tensor& x, const Mask& mask = Mask::causal()) const;

  /// Continues a sequence whose earlier keys and values the cache holds: see MultiHeadAttention.
  Tensor operator()(const Tensor& x, KvCache& cache, const Mask& mask = Mask::causal()) const;

  /// Redraws the weight matrices: those whose product is added to x (Wo, and the MLP's second matrix) from
  /// N(0, added_std^2), all others from N(0, std^2). Biases and norms keep their values.
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
