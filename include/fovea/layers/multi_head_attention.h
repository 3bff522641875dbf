#pragma once

#include <cstdint>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/ops/attention.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/kv_cache.h"
#include "fovea/layers/relative_bias.h"
#include "fovea/layers/rms_norm.h"
#include "fovea/layers/rotary.h"
#include "fovea/layers/visit.h"

namespace fovea {

struct MultiHeadAttentionOptions {
  std::optional<std::int64_t> key_value_heads = {};   ///< Hk, which divides H; by default H
  std::optional<std::int64_t> head_size = {};         ///< D; by default C / H
  bool bias = true;                                   ///< of all four projections
  std::optional<RotaryOptions> rotary = {};           ///< positions by turning queries and keys
  bool alibi = false;                                 ///< positions as a fixed bias of the scores
  std::optional<RelativeBuckets> relative_bias = {};  ///< positions as a learned bias of the scores
  std::optional<std::int64_t> window = {};            ///< as Mask::window, besides the mask of the call
  bool qk_norm = false;  ///< RmsNorm of queries and keys, head by head (Dehghani et al. 2023)
  double softcap = 0;    ///< as in AttentionOptions
  bool sinks = false;    ///< one learned logit per head that takes weight and gives nothing
  double dropout = 0;    ///< of the weights, in a `TrainMode` scope
};

/// Attention with several heads (Vaswani et al. 2017, section 3.2.2):
///   head_h = attention(x Wq_h, z Wk_h, z Wv_h),  y = concat(head_1, ..., head_H) Wo,
/// where z is x, or a context of which x asks. Wq_h are columns h D ... (h + 1) D of Wq.
///
/// Heads are concatenated before Wo. Equally: y is the sum over heads of head_h times rows h D ... (h + 1) D
/// of Wo, each head adding to what the others say. (Concatenating what heads give after a Wo of their own
/// would give H C channels instead of C.) Query heads share Hk heads of keys and values, as in `attention`.
///
/// Queries and keys are normalised, then turned, then compared. Positions count from the end, as Mask::causal
/// does: the last query is where the last key is.
///
/// At first each weight is uniform in +-1/sqrt(its number of rows); biases and sinks are 0.
/// Shapes: x (B, T, C) -> the same. Throws: ShapeError if x does not fit.
/// Taps: "scores" and "weights" (B, H, Tq, Tk), the latter before dropout; "heads" (B, H, Tq, D), before Wo.
struct FOVEA_API MultiHeadAttention {
  Tensor Wq, Wk, Wv;      ///< (C, H D), (C, Hk D), (C, Hk D)
  Tensor Wo;              ///< (H D, C)
  Tensor bq, bk, bv, bo;  ///< (H D,), (Hk D,), (Hk D,), (C,), or without a value
  Tensor sinks;           ///< (H,), or without a value
  std::optional<RmsNorm> q_norm, k_norm;
  std::optional<Rotary> rotary;
  std::optional<Alibi> alibi;
  std::optional<RelativeBias> relative_bias;
  std::optional<std::int64_t> window;
  std::int64_t heads, key_value_heads, head_size;
  double softcap, dropout;

  /// Throws: ValueError if a size is below 1, Hk does not divide H, H does not divide C where no head size is
  /// given, both ALiBi and relative biases are asked for, or an option has no meaning.
  MultiHeadAttention(std::int64_t d_model, std::int64_t heads, Rng& rng,
                     const MultiHeadAttentionOptions& options = {});

  /// Self-attention.
  Tensor operator()(const Tensor& x, const Mask& mask = Mask::causal()) const;

  /// Cross-attention: queries of x, keys and values of the context.
  /// Shapes: x (B, Tq, C), context (B, Tk, C) -> (B, Tq, C).
  Tensor operator()(const Tensor& x, const Tensor& context, const Mask& mask = {}) const;

  /// Self-attention of the next positions, one or several, to themselves and those in the cache: what the
  /// whole sequence would give there. Throws: also as KvCache::append. The cache is as it was then.
  Tensor operator()(const Tensor& x, KvCache& cache, const Mask& mask = Mask::causal()) const;

  /// An empty cache that fits.
  KvCache cache(std::int64_t batch, std::int64_t capacity) const;

  static void visit(const MultiHeadAttention& self, Visitor& v) {
    v("Wq", self.Wq);
    v("Wk", self.Wk);
    v("Wv", self.Wv);
    v("Wo", self.Wo);
    v("bq", self.bq);
    v("bk", self.bk);
    v("bv", self.bv);
    v("bo", self.bo);
    v("sinks", self.sinks);
    v("q_norm", self.q_norm);
    v("k_norm", self.k_norm);
    v("relative_bias", self.relative_bias);
  }

 private:
  Tensor queries(const Tensor& x, std::int64_t position) const;
  Tensor keys(const Tensor& x, std::int64_t position) const;
  Tensor values(const Tensor& x) const;
  Tensor joined(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) const;
};

}  // namespace fovea
