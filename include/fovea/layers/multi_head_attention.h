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
  std::optional<std::int64_t> key_value_heads = {};   ///< Hk, which divides H; H by default
  std::optional<std::int64_t> head_size = {};         ///< D; C / H by default
  bool bias = true;                                   ///< biases in all four projections
  std::optional<RotaryOptions> rotary = {};           ///< positions by rotation of queries and keys
  bool alibi = false;                                 ///< positions as a fixed bias of the scores
  std::optional<RelativeBuckets> relative_bias = {};  ///< positions as a learned bias of the scores
  std::optional<std::int64_t> window = {};            ///< hides distant keys, as Mask::window does
  bool qk_norm = false;  ///< RmsNorm of each head's queries and keys (Dehghani et al. 2023)
  double softcap = 0;    ///< if positive, limits the scores: see AttentionOptions
  bool sinks = false;    ///< one learned logit per head that takes weight and has no value
  double dropout = 0;    ///< of the attention weights, in a `TrainMode` scope
};

/// Attention with several heads (Vaswani et al. 2017, section 3.2.2):
///   head_h = attention(x Wq_h, z Wk_h, z Wv_h),  y = concat(head_1, ..., head_H) Wo,
/// where z is x (self-attention) or a context (cross-attention), and Wq_h are columns h D ... (h + 1) D of
/// Wq. H query heads share Hk heads of keys and values, as in `attention`.
///
/// Heads are concatenated before they are multiplied by Wo. Equally, y is the sum over heads of head_h times
/// rows h D ... (h + 1) D of Wo. (Outputs of heads that each had a (D, C) matrix of their own can't be
/// concatenated: that would give H C channels instead of C.)
///
/// Queries and keys are normalized first, then rotated, then compared. Positions are aligned at the end, as
/// in Mask::causal: the last query has the position of the last key.
///
/// The initial weights are uniform in +-1/sqrt(number of rows); biases and sinks are 0.
/// Shapes: x (B, T, C) -> the same. Throws: ShapeError if x does not fit.
/// Taps: "scores" and "weights" (B, H, Tq, Tk), the latter before dropout; "heads" (B, H, Tq, D), before Wo.
struct FOVEA_API MultiHeadAttention {
  Tensor Wq, Wk, Wv;      ///< (C, H D), (C, Hk D), (C, Hk D)
  Tensor Wo;              ///< (H D, C)
  Tensor bq, bk, bv, bo;  ///< (H D,), (Hk D,), (Hk D,), (C,), or undefined without biases
  Tensor sinks;           ///< (H,), or undefined without sinks
  std::optional<RmsNorm> q_norm, k_norm;
  std::optional<Rotary> rotary;
  std::optional<Alibi> alibi;
  std::optional<RelativeBias> relative_bias;
  std::optional<std::int64_t> window;
  std::int64_t heads, key_value_heads, head_size;
  double softcap, dropout;

  /// Throws: ValueError if a size is below 1, Hk does not divide H, H does not divide C and no head size is
  /// given, both ALiBi and relative biases are on, or an option is out of its range.
  MultiHeadAttention(std::int64_t d_model, std::int64_t heads, Rng& rng,
                     const MultiHeadAttentionOptions& options = {});

  /// Self-attention.
  Tensor operator()(const Tensor& x, const Mask& mask = Mask::causal()) const;

  /// Cross-attention: queries from x, keys and values from the context.
  /// Shapes: x (B, Tq, C), context (B, Tk, C) -> (B, Tq, C).
  Tensor operator()(const Tensor& x, const Tensor& context, const Mask& mask = {}) const;

  /// Self-attention of the next positions of a sequence whose earlier keys and values the cache holds. The
  /// output equals that of the whole sequence at these positions.
  /// Throws: also as KvCache::append; the cache is unchanged then.
  Tensor operator()(const Tensor& x, KvCache& cache, const Mask& mask = Mask::causal()) const;

  /// An empty cache of the right shape for this layer.
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
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) const;
};

}  // namespace fovea
