#include <algorithm>
#include <limits>

#include "autograd/base/fail.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reference.h"
#include "fovea/autograd/ops.h"

// Attention made of ops: the reference of the fused kernel, its gradient for second derivatives, and the
// steps (scores, softmax, output) for callers who want the weights.
namespace fovea {

using detail::check_attention;
using kernels::AttentionSizes;

namespace {

// --- Products, where H query heads share Hk key heads ------------------------------------------------------

// (B, H, T, X) as (B, Hk, H/Hk T, X): the query heads that share a key head lie side by side, so that the key
// head need not be repeated for each of them.
Tensor grouped(const Tensor& x, std::int64_t key_heads) {
  if (x.size(1) == key_heads) return x;
  return reshape(x, {x.size(0), key_heads, x.size(1) / key_heads * x.size(2), x.size(3)});
}

// a (B, H, T, X) times b (B, Hk, X, Y) -> (B, H, T, Y).
Tensor times_shared(const Tensor& a, const Tensor& b) {
  return reshape(matmul(grouped(a, b.size(1)), b), {a.size(0), a.size(1), a.size(2), b.size(3)});
}

// a^T b, summed over the query heads of a group: (B, H, T, X), (B, H, T, Y) -> (B, Hk, X, Y).
Tensor transposed_times(const Tensor& a, const Tensor& b, std::int64_t key_heads) {
  return matmul(transpose(grouped(a, key_heads)), grouped(b, key_heads));
}

// --- Mask --------------------------------------------------------------------------------------------------

// What a mask keeps. Hidden scores become -inf. Keys that no query sees and queries that see no key become
// zeros, so that nothing that stands there (padding, NaN) reaches a product or a gradient.
class Visible {
 public:
  Visible(const Mask& mask, const AttentionSizes& n) : everything_(mask.keeps_everything()), n_(n) {
    if (!everything_) kept_ = mask.materialize(n.batch, n.heads, n.queries, n.keys);
  }

  Tensor of_scores(const Tensor& scores) const {
    return everything_ ? scores : where(kept_, scores, -std::numeric_limits<double>::infinity());
  }
  // x (B, Hk, Tk, X) for keys or values: a key counts as seen if any query head of its group sees it.
  Tensor of_keys(const Tensor& x) const {
    if (everything_) return x;
    Bool seen = any(kept_, 2);
    if (seen.size(1) != 1 && n_.group() != 1) {
      seen = any(seen.reshape({seen.size(0), n_.key_heads, n_.group(), seen.size(3)}), 2);
    }
    return all(seen) ? x : where(seen.reshape({seen.size(0), seen.size(1), seen.size(3), 1}), x, 0.0);
  }
  // x (B, H, Tq, X) for queries, or anything that has a row for each of them.
  Tensor of_queries(const Tensor& x) const {
    if (everything_) return x;
    const Bool sees = any(kept_, 3);
    return all(sees) ? x : where(sees, x, 0.0);
  }

 private:
  bool everything_;
  AttentionSizes n_;
  Bool kept_;
};

// --- Biases by distance ------------------------------------------------------------------------------------

// (H, Tq + Tk - 1) -> (H, Tq, Tk): entry j - i + Tq - 1 at (i, j). This is the relative shift ("skewing") of
// Huang et al. 2018, section 3.4.1: n entries and one of padding are repeated for every query, and read as
// rows of n. So each row begins one entry earlier than the row before it.
Tensor relative_shift(const Tensor& relative, std::int64_t queries, std::int64_t keys) {
  const std::int64_t heads = relative.size(0), n = relative.size(1);
  if (queries == 0 || keys == 0) return zeros({heads, queries, keys}, relative.dtype());
  const Tensor padded = concat({relative, zeros({heads, 1}, relative.dtype())}, 1);
  const Tensor repeated = broadcast_to(reshape(padded, {heads, 1, n + 1}), {heads, queries, n + 1});
  const Tensor skewed = slice(reshape(repeated, {heads, queries * (n + 1)}), 1, 0, queries * n);
  return slice(reshape(skewed, {heads, queries, n}), 2, queries - 1, n);
}

// The transpose of the relative shift: (H, Tq, Tk) -> (H, Tq + Tk - 1), the sums along diagonals.
Tensor sum_along_diagonals(const Tensor& x) {
  const std::int64_t heads = x.size(0), queries = x.size(1), n = queries + x.size(2) - 1;
  if (x.numel() == 0) return zeros({heads, std::max<std::int64_t>(0, n)}, x.dtype());
  const Tensor rows = concat({zeros({heads, queries, queries - 1}, x.dtype()), x}, 2);
  const Tensor skewed = concat({reshape(rows, {heads, queries * n}), zeros({heads, queries}, x.dtype())}, 1);
  return slice(sum(reshape(skewed, {heads, queries, n + 1}), 1), 1, 0, n);
}

// --- Steps -------------------------------------------------------------------------------------------------

Tensor capped(const Tensor& scores, double softcap) {
  return softcap > 0 ? softcap * tanh(scores / softcap) : scores;
}

// The scores of products (B, H, Tq, Tk) that are capped already.
Tensor biased_and_masked(Tensor scores, const AttentionOptions& options, const Visible& visible) {
  if (options.bias.defined()) scores = scores + options.bias;
  if (options.relative_bias.defined()) {
    scores = scores + relative_shift(options.relative_bias, scores.size(2), scores.size(3));
  }
  return visible.of_scores(scores);
}

Tensor scores_of(const Tensor& q, const Tensor& k, const AttentionOptions& options, const Visible& visible) {
  const Tensor Q = visible.of_queries(q * detail::scale_of(q, options)), K = visible.of_keys(k);
  return biased_and_masked(capped(times_shared(Q, transpose(K)), options.softcap), options, visible);
}

using Softmax = Tensor (*)(const Tensor&, Axis);

// The weights of the keys (B, H, Tq, Tk), and of the sink (B, H, Tq, 1) if there is one.
struct Weights {
  Tensor keys, sink;
};

// A sink is one more score in each row.
Weights weights_of(const Tensor& scores, const Tensor& sinks, Softmax softmax) {
  if (!sinks.defined()) return {softmax(scores, -1), {}};
  const std::int64_t keys = scores.size(-1);
  const Shape column{scores.size(0), scores.size(1), scores.size(2), 1};
  const Tensor sink = broadcast_to(reshape(sinks, {sinks.numel(), 1, 1}), column);
  const Tensor all = softmax(concat({scores, sink}, -1), -1);
  return {slice(all, -1, 0, keys), slice(all, -1, keys, keys + 1)};
}

Tensor dropped(const Tensor& weights, const AttentionOptions& options, std::optional<std::uint64_t> key) {
  return key ? detail::dropout_rows(weights, options.dropout, *key) : weights;
}

Tensor output_of(const Tensor& weights, const Tensor& v, const AttentionOptions& options,
                 const Visible& visible) {
  const std::optional<std::uint64_t> key = detail::draw_dropout_key(options);
  return times_shared(dropped(weights, options, key), visible.of_keys(v));
}

}  // namespace

// softmax(scale Q K^T) V, with the options on the way.
Tensor reference::attention(const Tensor& q, const Tensor& k, const Tensor& v,
                            const AttentionOptions& options) {
  const Visible visible(options.mask, check_attention(q, k, v, options));
  const Tensor scores = scores_of(q, k, options, visible);
  const Tensor weights = weights_of(scores, options.sinks, reference::softmax).keys;
  return output_of(weights, v, options, visible);
}

Attention attention_with_weights(const Tensor& q, const Tensor& k, const Tensor& v,
                                 const AttentionOptions& options) {
  const Visible visible(options.mask, check_attention(q, k, v, options));
  const Tensor scores = scores_of(q, k, options, visible);
  const Tensor weights = weights_of(scores, options.sinks, softmax).keys;
  return {output_of(weights, v, options, visible), weights};
}

Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  return scores_of(q, k, options, Visible(options.mask, check_attention(q, k, {}, options)));
}

Tensor attention_softmax(const Tensor& scores, const Tensor& sinks) {
  if (sinks.defined() && (scores.rank() != 4 || sinks.shape() != Shape{scores.size(1)})) {
    fail<ShapeError>("[attention_softmax] expects scores (B, H, Tq, Tk) and sinks (H,), and got {} and {}",
                     to_string(scores.shape()), to_string(sinks.shape()));
  }
  return weights_of(scores, sinks, softmax).keys;
}

Tensor attention_output(const Tensor& weights, const Tensor& v, const AttentionOptions& options) {
  detail::check_dropout("attention_output", options.dropout);
  detail::check_same_dtype("attention_output", weights, v);
  if (weights.rank() != 4 || v.rank() != 4 || v.size(0) != weights.size(0) || v.size(2) != weights.size(3) ||
      (v.size(1) != weights.size(1) && (v.size(1) == 0 || weights.size(1) % v.size(1) != 0))) {
    fail<ShapeError>(
        "[attention_output] expects weights (B, H, Tq, Tk) and v (B, Hk, Tk, Dv), Hk dividing H, and got {} "
        "and {}",
        to_string(weights.shape()), to_string(v.shape()));
  }
  const AttentionSizes sizes{.batch = weights.size(0),
                             .heads = weights.size(1),
                             .key_heads = v.size(1),
                             .queries = weights.size(2),
                             .keys = weights.size(3)};
  return output_of(weights, v, options, Visible(options.mask, sizes));
}

// --- The gradient in ops -----------------------------------------------------------------------------------

// With the weights P, dP = dropout(dy v^T) and D = rowsum(P dP): dS = P (dP - D), which is 0 where P is. A
// sink is one more key, whose value is 0, so its gradient is P_sink (0 - D).
Gradients detail::attention_gradients_in_ops(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const AttentionOptions& options,
                                             std::optional<std::uint64_t> dropout_key, const Tensor& dy,
                                             const NeedsGradient& needs) {
  const AttentionSizes n = check_attention(q, k, v, options);
  const double scale = scale_of(q, options);
  const Visible visible(options.mask, n);
  const Tensor Q = visible.of_queries(q * scale), K = visible.of_keys(k), V = visible.of_keys(v);
  const Tensor dY = visible.of_queries(dy);

  const Tensor product = times_shared(Q, transpose(K));
  const Tensor scores = biased_and_masked(capped(product, options.softcap), options, visible);
  const auto [P, P_sink] = weights_of(scores, options.sinks, softmax);
  const Tensor dP = dropped(times_shared(dY, transpose(V)), options, dropout_key);
  const Tensor D = sum(P * dP, -1, keepdims);
  const Tensor dS = P * (dP - D);
  Tensor dproduct = dS;
  if (options.softcap > 0 && (needs[0] || needs[1])) {
    dproduct = dS * detail::tanh_slope(product / options.softcap);
  }

  Gradients gradients(6, {});
  if (needs[0]) gradients[0] = visible.of_queries(times_shared(dproduct, K)) * scale;
  if (needs[1]) gradients[1] = visible.of_keys(transposed_times(dproduct, Q, n.key_heads));
  if (needs[2]) {
    const Tensor dropped_P = dropped(P, options, dropout_key);
    gradients[2] = visible.of_keys(transposed_times(dropped_P, dY, n.key_heads));
  }
  if (needs[3]) gradients[3] = sum_to(dS, needs.shape(3));
  if (needs[4]) gradients[4] = sum_to(sum_along_diagonals(sum(dS, 0)), needs.shape(4));
  if (needs[5]) gradients[5] = -sum(P_sink * D, {0, 2, 3});
  return gradients;
}

}  // namespace fovea
