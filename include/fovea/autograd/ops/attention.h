#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/mask.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"

/// Attention and its steps.
///
/// H query heads share Hk heads of keys and values, where Hk divides H: query head h uses key head h / (H /
/// Hk). Hk = H is the usual case, Hk = 1 is multi-query attention (Shazeer 2019), and what lies between is
/// grouped-query attention (Ainslie et al. 2023). There may be more or fewer queries (Tq) than keys (Tk).
namespace fovea {

struct AttentionOptions {
  /// Which query may see which key.
  Mask mask = {};
  /// Is added to the scores. Shapes: broadcastable to (B, H, Tq, Tk).
  Tensor bias = {};
  /// Is added to the scores by distance: entry [h, j - i + Tq - 1] to the score of query i and key j, both
  /// counted from 0. It takes memory linear in T, where a bias takes quadratic memory. `alibi_bias` makes
  /// one, and `relative_buckets` helps to make a learned one. Shapes: (H, Tq + Tk - 1) or (1, Tq + Tk - 1).
  Tensor relative_bias = {};
  /// What the products of queries and keys are multiplied by; 1 / sqrt(D) by default, with D the head size.
  std::optional<double> scale = {};
  /// The probability that a weight is dropped, in a `TrainMode` scope.
  double dropout = 0;
  /// If positive, scores become softcap tanh(score / softcap), before bias and mask (Gemma 2, 2024).
  double softcap = 0;
  /// One more score in each row of a head, for a key whose value is 0: it takes some of the weight, so that
  /// the weights of the keys sum to less than 1 (Xiao et al. 2023; gpt-oss 2025). Shapes: (H,).
  Tensor sinks = {};
};

/// Scaled dot-product attention (Vaswani et al. 2017, eq. 1), all heads at once:
///   s_ij = softcap(scale q_i . k_j) + bias_ij + relative_bias[j - i + Tq - 1], and -inf where the mask
///   hides, w_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink)),   y_i = sum_j dropout(w_ij) v_j.
///
/// It is computed block by block with a running maximum and sum (Dao et al. 2022), forward and backward:
/// nothing of size Tq x Tk is stored, and hidden blocks are skipped. A query that may see no key gets zeros,
/// in value and in every gradient. NaN or infinity in keys and values that no query may see has no influence.
///
/// To join the heads, concatenate their outputs and multiply by Wo (H Dv, C); equally, sum over heads the
/// output times that head's rows of Wo. Shapes: q (B, H, Tq, D), k (B, Hk, Tk, D), v (B, Hk, Tk, Dv) -> (B,
/// H, Tq, Dv). Throws: ShapeError; DtypeError; ValueError for an option outside its range.
FOVEA_API Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionOptions& options = {});

struct Attention {
  Tensor output;   ///< (B, H, Tq, Dv)
  Tensor weights;  ///< (B, H, Tq, Tk), before dropout; a row sums to 1, or is 0 if the mask hides every key
};
/// The same together with the weights. It is made of ops and takes memory quadratic in T.
/// Throws: as `attention`.
FOVEA_API Attention attention_with_weights(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const AttentionOptions& options = {});

/// The weights of some heads, computed again from queries and keys.
///
/// Shapes: q (B, H, Tq, D), k (B, Hk, Tk, D), n heads -> (B, n, Tq, Tk).
/// Throws: as `attention`; IndexError for a head outside [0, H).
FOVEA_API Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                                   const Indices& heads);

// --- The steps of `attention_with_weights`, for callers who look at or replace what is between them --------

/// The scores s, -inf where the mask hides a key. Shapes: -> (B, H, Tq, Tk). Throws: as `attention`.
FOVEA_API Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});
/// The weights: the softmax of scores (B, H, Tq, Tk), with the sinks (H,) as one more score if there are any.
FOVEA_API Tensor attention_softmax(const Tensor& scores, const Tensor& sinks = {});
/// The output: the values, summed with the weights after dropout. Of the options, mask and dropout are used.
/// Shapes: weights (B, H, Tq, Tk), v (B, Hk, Tk, Dv) -> (B, H, Tq, Dv).
FOVEA_API Tensor attention_output(const Tensor& weights, const Tensor& v,
                                  const AttentionOptions& options = {});

// --- Biases by distance, for AttentionOptions::relative_bias -----------------------------------------------
//
// The last query is aligned with the last key, as in Mask::causal: entry r is for keys at r - (Tk - 1) from
// the query's own position.

/// The slopes of ALiBi, attention with linear biases (Press et al. 2022): 2^(-8/H), 2^(-16/H), ..., 2^-8 if H
/// is a power of two; else those of the largest power of two n below H, followed by every second one of those
/// of 2n. Shapes: -> (H,). Throws: ValueError if heads < 1.
FOVEA_API Tensor alibi_slopes(std::int64_t heads, Dtype dtype = f32);
/// The bias of ALiBi: -slope |distance| (Press et al. 2022). Shapes: slopes (H,) -> (H, Tq + Tk - 1).
FOVEA_API Tensor alibi_bias(const Tensor& slopes, std::int64_t queries, std::int64_t keys);

struct RelativeBuckets {
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;  ///< this distance and all beyond it share the last bucket
  bool bidirectional = false;  ///< whether keys ahead have half of the buckets; otherwise they share bucket 0
};
/// T5's bucket of every distance (Raffel et al. 2020): each near distance has a bucket of its own; farther
/// ones share buckets, whose widths grow with the logarithm of the distance. With a table (buckets, H), the
/// bias is `transpose(embedding(table, relative_buckets(Tq, Tk)))`. Shapes: -> (Tq + Tk - 1,). Throws:
/// ValueError if there are too few buckets for near and far distances.
FOVEA_API Indices relative_buckets(std::int64_t queries, std::int64_t keys,
                                   const RelativeBuckets& options = {});

// --- One head ----------------------------------------------------------------------------------------------

/// One head of self-attention, from its input to its output:
///   Q = x Wq, K = x Wk, V = x Wv, A = softmax(mask(Q K^T / sqrt(D))), y = A V Wo.
///
/// Shapes: x (B, T, C) or (T, C); Wq, Wk, Wv (C, D); Wo (D, C) -> output as x, weights A (B, T, T) or (T, T).
/// Throws: ShapeError if x does not fit the weights.
FOVEA_API Attention self_attention(const Tensor& x, const Tensor& Wq, const Tensor& Wk, const Tensor& Wv,
                                   const Tensor& Wo, const Mask& mask = Mask::causal());

}  // namespace fovea
