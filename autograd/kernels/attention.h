#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "autograd/kernels/dropout.h"

// Attention in tiles: a block of queries meets one tile of keys after another, with a running maximum and sum
// of each row's softmax (Dao et al. 2022), queries in the outer loop (Dao 2023).
namespace fovea::kernels {

/// H query heads share Hk key heads.
struct AttentionSizes {
  std::int64_t batch = 0, heads = 0, key_heads = 0;
  std::int64_t queries = 0, keys = 0;
  std::int64_t head_size = 0, value_size = 0;

  std::int64_t group() const { return key_heads == 0 ? 1 : heads / key_heads; }
  /// Entries of a bias by distance.
  std::int64_t distances() const { return queries + keys > 0 ? queries + keys - 1 : 0; }
};

/// An array of four axes, read in place; steps are 0 along axes that repeat.
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

/// Keys begin, ..., end - 1.
struct KeyRange {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

struct AttentionMask {
  bool causal = false;
  std::optional<std::int64_t> window = {};
  const std::int64_t* lengths = nullptr;  ///< (B,)
  View4<std::uint8_t> seen = {};          ///< (B, H, Tq, Tk)

  /// What a query sees by all of these but `seen`. Both ends grow with the query.
  KeyRange range(const AttentionSizes& sizes, std::int64_t batch, std::int64_t query) const;
};

template <class T>
struct AttentionInputs {
  AttentionSizes sizes;
  View4<T> q, k, v;
  double scale = 1;
  double softcap = 0;                ///< 0: none
  View4<T> bias = {};                ///< (B, H, Tq, Tk)
  const T* relative_bias = nullptr;  ///< (H or 1, Tq + Tk - 1), row-major: entry j - i + Tq - 1
  std::int64_t relative_heads = 1;
  const T* sinks = nullptr;  ///< (H,)
  AttentionMask mask = {};
  std::optional<DropoutMask> dropout = {};  ///< rows are numbered as in (B, H, Tq)
};

/// The weights of a row are exp(s - shift) scale; scale is 0 in a row that sees nothing.
template <class T>
struct SoftmaxRow {
  T shift, scale;
};

/// Row-major results: output (B, H, Tq, Dv), rows (B, H, Tq).
template <class T>
void attention(const AttentionInputs<T>& in, T* output, SoftmaxRow<T>* rows);

/// What the backward pass starts from.
template <class T>
struct AttentionRun {
  const T* output;            ///< (B, H, Tq, Dv), row-major
  const SoftmaxRow<T>* rows;  ///< (B, H, Tq)
  View4<T> doutput;
};

/// Row-major arrays of the shapes of the inputs; null where no gradient is needed.
template <class T>
struct AttentionGradients {
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
  T* dbias = nullptr;
  std::array<std::int64_t, 4> bias_shape{};  ///< 1 along axes that repeat
  T* drelative = nullptr;
  T* dsinks = nullptr;
};

/// How many elements of working space the backward pass wants: linear in the number of keys.
std::int64_t attention_backward_space(const AttentionSizes& sizes);

template <class T>
void attention_backward(const AttentionInputs<T>& in, const AttentionRun<T>& run,
                        const AttentionGradients<T>& out, T* space);

/// The gradient of the bias alone, which repeats along other axes than keys and values do.
template <class T>
void attention_bias_backward(const AttentionInputs<T>& in, const AttentionRun<T>& run,
                             const AttentionGradients<T>& out);

}  // namespace fovea::kernels
