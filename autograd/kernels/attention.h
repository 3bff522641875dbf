#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "autograd/kernels/dropout.h"

// Attention without the (Tq, Tk) map of weights (FlashAttention: Dao et al. 2022): a block of queries meets
// one block of keys after another and keeps the running maximum and sum of each row's softmax (Milakov &
// Gimelshein 2018). Blocks of queries are the outer loop (Dao 2023). attention.cpp has the forward pass,
// attention_backward.cpp the backward pass, and attention_block.h the scores of one block, which both share.
namespace fovea::kernels {

/// The sizes of one call. H query heads share Hk key heads.
struct AttentionSizes {
  std::int64_t batch = 0, heads = 0, key_heads = 0;
  std::int64_t queries = 0, keys = 0;
  std::int64_t head_size = 0, value_size = 0;

  /// How many query heads share one key head.
  std::int64_t group() const { return key_heads == 0 ? 1 : heads / key_heads; }
  /// How many different distances j - i there are between a query i and a key j.
  std::int64_t distances() const { return queries + keys > 0 ? queries + keys - 1 : 0; }
};

/// An array with four axes that is read where it lies. The step along an axis that repeats is 0.
template <class T>
struct View4 {
  const T* data = nullptr;
  std::array<std::int64_t, 4> steps{};

  const T* row(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return data + i * steps[0] + j * steps[1] + k * steps[2];
  }
  std::int64_t step() const { return steps[3]; }
  explicit operator bool() const { return data != nullptr; }
};

/// The keys begin, ..., end - 1.
struct KeyRange {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

/// Which query may see which key: all of the conditions below must hold.
struct AttentionMask {
  bool causal = false;
  std::optional<std::int64_t> window = {};
  const std::int64_t* lengths = nullptr;  ///< (B,)
  View4<std::uint8_t> seen = {};          ///< (B, H, Tq, Tk)

  /// The keys that a query sees by all conditions but `seen`. Both ends grow with the query.
  KeyRange range(const AttentionSizes& sizes, std::int64_t batch, std::int64_t query) const;
};

template <class T>
struct AttentionInputs {
  AttentionSizes sizes;
  View4<T> q, k, v;
  double scale = 1;
  double softcap = 0;                ///< 0 for none
  View4<T> bias = {};                ///< (B, H, Tq, Tk)
  const T* relative_bias = nullptr;  ///< (H or 1, Tq + Tk - 1), row-major: entry j - i + Tq - 1
  std::int64_t relative_heads = 1;   ///< the first size of relative_bias
  const T* sinks = nullptr;          ///< (H,)
  AttentionMask mask = {};
  std::optional<DropoutMask> dropout = {};  ///< its rows are those of (B, H, Tq), in order
};

/// What turns the scores s of a query into its weights exp(s - shift) scale. scale is 0 if it sees no key.
template <class T>
struct SoftmaxRow {
  T shift, scale;
};

/// Computes, for every query i,
///   s_ij = softcap(scale q_i . k_j) + bias_ij, -inf where the mask hides key j from query i,
///   w_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink)),   output_i = sum_j dropout(w_ij) v_j.
///
/// Shapes: output (B, H, Tq, Dv) and rows (B, H, Tq), both row-major.
template <class T>
void attention(const AttentionInputs<T>& in, T* output, SoftmaxRow<T>* rows);

/// What the forward pass left, and the cotangent of its output.
template <class T>
struct AttentionCotangent {
  const T* output;            ///< (B, H, Tq, Dv), row-major
  const SoftmaxRow<T>* rows;  ///< (B, H, Tq)
  View4<T> doutput;           ///< (B, H, Tq, Dv)
};

/// Where the gradients go: row-major arrays of the shapes of the inputs, null where no gradient is needed.
template <class T>
struct AttentionGradients {
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
  T* dbias = nullptr;
  std::array<std::int64_t, 4> bias_shape{};  ///< 1 along the axes that repeat
  T* drelative = nullptr;
  T* dsinks = nullptr;
};

/// How many elements of workspace `attention_backward` needs: linear in the number of keys.
std::int64_t attention_backward_workspace(const AttentionSizes& sizes);

/// Writes all gradients but that of the bias.
template <class T>
void attention_backward(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy,
                        const AttentionGradients<T>& out, T* workspace);

/// Writes the gradient of the bias. It is a pass of its own, since a bias repeats along other axes than keys
/// and values do, so that its sums run over other blocks.
template <class T>
void attention_bias_backward(const AttentionInputs<T>& in, const AttentionCotangent<T>& dy,
                             const AttentionGradients<T>& out);

}  // namespace fovea::kernels
