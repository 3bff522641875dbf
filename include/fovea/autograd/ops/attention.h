#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"

/// Attention and what it is made of. Shapes: H query heads share Hk heads of keys and values, and Hk divides
/// H: query head h uses key head h / (H / Hk) (Hk = H: the usual; Hk = 1: multi-query, Shazeer 2019; between
/// them: grouped, Ainslie et al. 2023). Tq queries need not be as many as Tk keys.
namespace fovea {

struct AttentionOptions {
  /// Which query may see which key.
  Mask mask = {};
  /// Added to the scores. Shapes: broadcastable to (B, H, Tq, Tk).
  Tensor bias = {};
  /// Added by distance: entry [h, j - i + Tq - 1] to the score of query i and key j, both counted from 0.
  /// Linear in T where a bias is quadratic. `alibi_bias` makes one; `relative_buckets` helps with another.
  /// Shapes: (H, Tq + Tk - 1) or (1, Tq + Tk - 1).
  Tensor relative_bias = {};
  /// Of the products of queries and keys; by default 1 / sqrt(D), D the size of a head (not of the model).
  std::optional<double> scale = {};
  /// The chance that a weight is dropped, in a `TrainMode` scope.
  double dropout = 0;
  /// If positive, scores are bent to softcap tanh(score / softcap) before bias and mask (Gemma 2, 2024).
  double softcap = 0;
  /// One more logit per head, which takes weight and gives nothing, so that rows sum to less than 1 (Xiao et
  /// al. 2023; gpt-oss 2025). Shapes: (H,).
  Tensor sinks = {};
};

/// Scaled dot-product attention (Vaswani et al. 2017, eq. 1), all heads at once:
///   s_ij = softcap(scale q_i . k_j) + bias_ij + relative[j - i + Tq - 1], -inf where the mask hides,
///   w_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink)),   y_i = sum_j dropout(w_ij) v_j.
///
/// Computed tile by tile with a running maximum and sum (Dao et al. 2022), forward and backward: nothing of
/// size Tq x Tk is stored, and what is hidden is skipped. A query that may see nothing gets zeros, in value
/// and in every gradient. NaN or infinity in keys and values that no query may see has no influence.
///
/// To join heads to channels, concatenate their outputs and multiply by one Wo of (H Dv, C); equally, sum
/// over heads of output times that head's rows of Wo. (The heads' outputs after Wo are not concatenated: that
/// would give (T, H C).) Shapes: q (B, H, Tq, D), k (B, Hk, Tk, D), v (B, Hk, Tk, Dv) -> (B, H, Tq, Dv).
/// Throws: ShapeError; DtypeError; ValueError for an option without meaning.
FOVEA_API Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionOptions& options = {});

struct Attention {
  Tensor output;  ///< (B, H, Tq, Dv)
  Tensor
      weights;  ///< (B, H, Tq, Tk), before dropout: rows sum to 1, or are 0 where the mask hides everything
};
/// The same together with the weights, made of ops: memory is quadratic in T. Throws: as `attention`.
FOVEA_API Attention attention_with_weights(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const AttentionOptions& options = {});

/// The weights of some heads, of a run that did not keep them.
///
/// Shapes: q (B, H, Tq, D), k (B, Hk, Tk, D), n heads -> (B, n, Tq, Tk).
/// Throws: as `attention`; IndexError for a head outside [0, H).
FOVEA_API Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                                   const Indices& heads);

// --- The steps of `attention_with_weights`, for those who want to look at or replace what is between
// ---------

/// The scores s, -inf where the mask hides. Shapes: -> (B, H, Tq, Tk).
FOVEA_API Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});
/// softmax of scores (B, H, Tq, Tk), with the sinks (H,) as one more logit if there are any.
FOVEA_API Tensor attention_softmax(const Tensor& scores, const Tensor& sinks = {});
/// Dropout of the weights, then their sum of values; of the options, mask and dropout are used.
/// Shapes: weights (B, H, Tq, Tk), v (B, Hk, Tk, Dv) -> (B, H, Tq, Dv).
FOVEA_API Tensor attention_output(const Tensor& weights, const Tensor& v,
                                  const AttentionOptions& options = {});

// --- Biases by distance, for AttentionOptions::relative. The last query is aligned with the last key, as in
// Mask::causal: entry r is for a key at r - (Tk - 1) from the query's own
// -------------------------------------

/// The slopes of attention with linear biases (Press et al. 2022): 2^(-8/H), 2^(-16/H), ..., 2^-8 if H is a
/// power of two; else those of the largest power of two n below H, followed by every second one of 2n.
/// Shapes: -> (H,). Throws: ValueError if heads < 1.
FOVEA_API Tensor alibi_slopes(std::int64_t heads, Dtype dtype = f32);
/// -slope |distance| (Press et al. 2022). Shapes: slopes (H,) -> (H, Tq + Tk - 1).
FOVEA_API Tensor alibi_bias(const Tensor& slopes, std::int64_t queries, std::int64_t keys);

struct RelativeBuckets {
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;  ///< everything farther shares the last bucket
  bool bidirectional = false;       ///< half of the buckets for keys ahead; without, those share bucket 0
};
/// T5's bucket of every distance (Raffel et al. 2020): near distances have one each, farther ones share, in
/// steps that grow with the logarithm. With a table (buckets, H), the bias is
/// `transpose(embedding(table, relative_buckets(Tq, Tk)))`.
/// Shapes: -> (Tq + Tk - 1,). Throws: ValueError if there are too few buckets for near and far distances.
FOVEA_API Indices relative_buckets(std::int64_t queries, std::int64_t keys,
                                   const RelativeBuckets& options = {});

// --- The essay's form
// ---------------------------------------------------------------------------------------

/// One head of self-attention, as the essay writes it:
///   Q = x Wq, K = x Wk, V = x Wv, A = softmax(Q K^T / sqrt(D), masked), y = A V Wo.
///
/// Shapes: x (B, T, C) or (T, C); Wq, Wk, Wv (C, D); Wo (D, C) -> output as x, weights (B, T, T) or (T, T).
FOVEA_API Attention self_attention(const Tensor& x, const Tensor& Wq, const Tensor& Wk, const Tensor& Wv,
                                   const Tensor& Wo, const Mask& mask = Mask::causal());

}  // namespace fovea
