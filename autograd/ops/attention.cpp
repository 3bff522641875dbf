#include <cmath>
#include <limits>

#include "autograd/fail.h"
#include "autograd/ops/elementwise.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

void check_shapes(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool fit = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && k.size(0) == q.size(0) &&
                   v.size(0) == q.size(0) && k.size(1) == q.size(1) && v.size(1) == q.size(1) &&
                   k.size(3) == q.size(3) && v.size(2) == k.size(2);
  if (fit) return;
  fail<ShapeError>(
      "[attention] expects q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv), and got q {}, k {}, v {}",
      to_string(q.shape()), to_string(k.shape()), to_string(v.shape()));
}

// Keys or values with zeros in place of those that no query may see, so that what is hidden there (padding,
// NaN) reaches neither a product nor a gradient. kept: broadcastable to (B, H, Tq, Tk).
Tensor hide_unseen(const Tensor& x, const Bool& kept) {
  const Bool seen = any(kept, 2);
  if (all(seen)) return x;
  const Shape& shape = seen.shape();
  return where(seen.reshape({shape[0], shape[1], shape[3], 1}), x, 0.0);
}

}  // namespace

Attention attention_with_weights(const Tensor& q, const Tensor& k, const Tensor& v,
                                 const AttentionOptions& options) {
  check_shapes(q, k, v);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  if (options.mask.keeps_everything()) {
    const Tensor weights = softmax(matmul(q * scale, transpose(k)));
    return {matmul(weights, v), weights};
  }
  const Bool kept = options.mask.materialize(q.size(0), q.size(1), q.size(2), k.size(2));
  const Tensor scores = matmul(q * scale, transpose(hide_unseen(k, kept)));
  const Tensor weights = softmax(where(kept, scores, -std::numeric_limits<double>::infinity()));
  return {matmul(weights, hide_unseen(v, kept)), weights};
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  return attention_with_weights(q, k, v, options).output;
}

Attention self_attention(const Tensor& x, const Tensor& Wq, const Tensor& Wk, const Tensor& Wv,
                         const Tensor& Wo, const Mask& mask) {
  if (x.rank() != 2 && x.rank() != 3) {
    fail<ShapeError>("[self_attention] expects x (B, T, C) or (T, C), and got {}", to_string(x.shape()));
  }
  const std::int64_t batch = x.rank() == 3 ? x.size(0) : 1;
  const std::int64_t time = x.size(-2);
  const auto one_head = [&](const Tensor& W) { return reshape(linear(x, W), {batch, 1, time, W.size(1)}); };
  const Attention heads = attention_with_weights(one_head(Wq), one_head(Wk), one_head(Wv), {.mask = mask});

  Shape out = x.shape();
  out.back() = Wv.size(1);
  Shape map = x.shape();
  map.back() = time;
  return {linear(reshape(heads.output, out), Wo), reshape(heads.weights, map)};
}

}  // namespace fovea
