#include <algorithm>
#include <limits>
#include <vector>

#include "autograd/ops/attention.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reference.h"
#include "fovea/autograd/ops.h"

// Attention made of ops: its map, its steps, the oracle of the fused kernel, and the gradient that can be
// differentiated again.
namespace fovea {

using detail::check_attention;
using kernels::AttentionSizes;

namespace {

// (B, H, T, X) as (B, Hk, H/Hk T, X): the query heads of a group side by side, so that their key head is not
// repeated for them.
Tensor grouped(const Tensor& x, std::int64_t key_heads) {
  if (x.size(1) == key_heads) return x;
  return reshape(x, {x.size(0), key_heads, x.size(1) / key_heads * x.size(2), x.size(3)});
}

// a (B, H, T, X) times b (B, Hk, X, Y).
Tensor times_shared(const Tensor& a, const Tensor& b) {
  return reshape(matmul(grouped(a, b.size(1)), b), {a.size(0), a.size(1), a.size(2), b.size(3)});
}

// a^T b, summed over the heads of a group: (B, H, T, X), (B, H, T, Y) -> (B, Hk, X, Y).
Tensor transposed_times(const Tensor& a, const Tensor& b, std::int64_t key_heads) {
  return matmul(transpose(grouped(a, key_heads)), grouped(b, key_heads));
}

// What a mask keeps, and inputs with zeros in place of what has no influence, so that what is hidden there
// (padding, NaN) reaches neither a product nor a gradient.
class Visible {
 public:
  Visible(const Mask& mask, const AttentionSizes& n) : everything_(mask.keeps_everything()), n_(n) {
    if (!everything_) kept_ = mask.materialize(n.batch, n.heads, n.queries, n.keys);
  }

  Tensor of_scores(const Tensor& scores) const {
    return everything_ ? scores : where(kept_, scores, -std::numeric_limits<double>::infinity());
  }
  // Keys or values (B, Hk, Tk, X) that some query of their group sees.
  Tensor of_keys(const Tensor& x) const {
    if (everything_) return x;
    Bool seen = any(kept_, 2);
    if (seen.size(1) != 1 && n_.group() != 1) {
      seen = any(seen.reshape({seen.size(0), n_.key_heads, n_.group(), seen.size(3)}), 2);
    }
    return all(seen) ? x : where(seen.reshape({seen.size(0), seen.size(1), seen.size(3), 1}), x, 0.0);
  }
  // Queries, or rows for them (B, H, Tq, X), that see something.
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

// (H, Tq + Tk - 1) -> (H, Tq, Tk): entry j - i + Tq - 1 at (i, j). Rows of one more than there are entries,
// read as if they were as long as these, begin one entry earlier each.
Tensor along_diagonals(const Tensor& relative, std::int64_t queries, std::int64_t keys) {
  const std::int64_t heads = relative.size(0), n = relative.size(1);
  if (queries == 0 || keys == 0) return zeros({heads, queries, keys}, relative.dtype());
  const Tensor padded = concat({relative, zeros({heads, 1}, relative.dtype())}, 1);
  const Tensor rows = broadcast_to(reshape(padded, {heads, 1, n + 1}), {heads, queries, n + 1});
  const Tensor skewed = slice(reshape(rows, {heads, queries * (n + 1)}), 1, 0, queries * n);
  return slice(reshape(skewed, {heads, queries, n}), 2, queries - 1, n);
}

// Its transpose: (H, Tq, Tk) -> (H, Tq + Tk - 1), sums along diagonals.
Tensor sum_diagonals(const Tensor& x) {
  const std::int64_t heads = x.size(0), queries = x.size(1), n = queries + x.size(2) - 1;
  if (x.numel() == 0) return zeros({heads, std::max<std::int64_t>(0, n)}, x.dtype());
  const Tensor rows = concat({zeros({heads, queries, queries - 1}, x.dtype()), x}, 2);
  const Tensor skewed = concat({reshape(rows, {heads, queries * n}), zeros({heads, queries}, x.dtype())}, 1);
  return slice(sum(reshape(skewed, {heads, queries, n + 1}), 1), 1, 0, n);
}

struct Scores {
  Tensor capped;  // scale q k^T, bent if there is a softcap
  Tensor all;     // with biases, -inf where hidden
};

Scores scores_of(const Tensor& queries, const Tensor& keys, const AttentionOptions& options,
                 const Visible& visible) {
  Tensor s = times_shared(queries, transpose(keys));
  if (options.softcap > 0) s = options.softcap * tanh(s / options.softcap);
  Scores scores{s, s};
  if (options.bias.defined()) scores.all = scores.all + options.bias;
  if (options.relative_bias.defined()) {
    scores.all = scores.all + along_diagonals(options.relative_bias, queries.size(2), keys.size(2));
  }
  scores.all = visible.of_scores(scores.all);
  return scores;
}

Scores scores_of(const Tensor& q, const Tensor& k, const AttentionOptions& options, const AttentionSizes& n) {
  const Visible visible(options.mask, n);
  return scores_of(visible.of_queries(q * detail::scale_of(q, options)), visible.of_keys(k), options,
                   visible);
}

using Softmax = Tensor (*)(const Tensor&, std::int64_t);

// (B, H, Tq, Tk + 1): the weights of the keys, and that of the sink.
Tensor softmax_with_sink(const Tensor& scores, const Tensor& sinks, Softmax softmax) {
  const Shape column{scores.size(0), scores.size(1), scores.size(2), 1};
  const Tensor sink = broadcast_to(reshape(sinks, {sinks.numel(), 1, 1}), column);
  return softmax(concat({scores, sink}, -1), -1);
}

Tensor weights_of(const Tensor& scores, const Tensor& sinks, Softmax softmax) {
  if (!sinks.defined()) return softmax(scores, -1);
  return slice(softmax_with_sink(scores, sinks, softmax), -1, 0, scores.size(-1));
}

Tensor dropped(const Tensor& weights, double p, std::optional<std::uint64_t> key) {
  return key ? detail::dropout_rows(weights, p, *key) : weights;
}

Tensor output_of(const Tensor& weights, const Tensor& v, const AttentionOptions& options,
                 const AttentionSizes& n) {
  const std::optional<std::uint64_t> key = detail::draw_dropout_key(options);
  return times_shared(dropped(weights, options.dropout, key), Visible(options.mask, n).of_keys(v));
}

// Positions of an axis, in a given order; all of them if it has size 1 and repeats.
Tensor select_along(const Tensor& x, std::int64_t axis, std::span<const std::int64_t> positions) {
  if (!x.defined() || x.size(axis) == 1) return x;
  std::vector<Tensor> parts;
  for (const std::int64_t at : positions) parts.push_back(slice(x, axis, at, at + 1));
  return concat(parts, axis);
}

// A mask that may differ between heads, for some of them.
Bool select_heads(const Bool& kept, std::span<const std::int64_t> heads) {
  if (kept.size(1) == 1) return kept;
  const std::int64_t of_head = kept.size(2) * kept.size(3);
  const auto count = static_cast<std::int64_t>(heads.size());
  return Bool({kept.size(0), count, kept.size(2), kept.size(3)}, [&](std::uint8_t* out) {
    for (std::int64_t b = 0; b < kept.size(0); ++b) {
      for (const std::int64_t head : heads) {
        out = std::copy_n(kept.data() + (b * kept.size(1) + head) * of_head, of_head, out);
      }
    }
  });
}

}  // namespace

Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  return scores_of(q, k, options, check_attention(q, k, {}, options)).all;
}

Tensor attention_softmax(const Tensor& scores, const Tensor& sinks) {
  if (sinks.defined() && (scores.rank() != 4 || sinks.shape() != Shape{scores.size(1)})) {
    fail<ShapeError>("[attention_softmax] scores {} need sinks (H,), one per head, and got {}",
                     to_string(scores.shape()), to_string(sinks.shape()));
  }
  return weights_of(scores, sinks, softmax);
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
  return output_of(weights, v, options,
                   {.batch = weights.size(0),
                    .heads = weights.size(1),
                    .key_heads = v.size(1),
                    .queries = weights.size(2),
                    .keys = weights.size(3)});
}

Attention attention_with_weights(const Tensor& q, const Tensor& k, const Tensor& v,
                                 const AttentionOptions& options) {
  const AttentionSizes n = check_attention(q, k, v, options);
  const Tensor weights = weights_of(scores_of(q, k, options, n).all, options.sinks, softmax);
  return {output_of(weights, v, options, n), weights};
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                         const Indices& heads) {
  const AttentionSizes n = check_attention(q, k, {}, options);
  std::vector<std::int64_t> key_heads;
  for (const std::int64_t head : heads.values()) {
    if (head < 0 || head >= n.heads) {
      fail<IndexError>("[attention_weights] head {} asked for, there are {}", head, n.heads);
    }
    key_heads.push_back(head / n.group());
  }
  if (key_heads.empty()) return zeros({n.batch, 0, n.queries, n.keys}, q.dtype());
  AttentionOptions of_heads = options;
  if (!options.mask.keeps_everything()) {
    of_heads.mask = Mask::keep(
        select_heads(options.mask.materialize(n.batch, n.heads, n.queries, n.keys), heads.values()));
  }
  if (options.bias.defined() && options.bias.rank() >= 3) {
    of_heads.bias = select_along(options.bias, -3, heads.values());
  }
  of_heads.relative_bias = select_along(options.relative_bias, 0, heads.values());
  if (options.sinks.defined()) {
    of_heads.sinks = broadcast_to(select_along(options.sinks, 0, heads.values()), {heads.numel()});
  }
  const Shape queries{n.batch, heads.numel(), n.queries, n.head_size};
  const Shape keys{n.batch, heads.numel(), n.keys, n.head_size};
  const Tensor scores = attention_scores(broadcast_to(select_along(q, 1, heads.values()), queries),
                                         broadcast_to(select_along(k, 1, key_heads), keys), of_heads);
  return attention_softmax(scores, of_heads.sinks);
}

Tensor reference::attention(const Tensor& q, const Tensor& k, const Tensor& v,
                            const AttentionOptions& options) {
  const AttentionSizes n = check_attention(q, k, v, options);
  const Tensor weights = weights_of(scores_of(q, k, options, n).all, options.sinks, reference::softmax);
  return output_of(weights, v, options, n);
}

// With P the weights, dP = dropout(dy v^T) and D = rowsum(P dP): dS = P (dP - D), which is 0 where P is. The
// sink is one more key whose value is 0, so its gradient is P_sink (0 - D).
Gradients detail::attention_gradients_in_ops(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const AttentionOptions& options,
                                             std::optional<std::uint64_t> dropout_key, const Tensor& dy,
                                             const NeedsGradient& needs) {
  const AttentionSizes n = check_attention(q, k, v, options);
  const double scale = scale_of(q, options);
  const Visible visible(options.mask, n);
  const Tensor queries = visible.of_queries(q * scale), keys = visible.of_keys(k),
               values = visible.of_keys(v);
  const Tensor upstream = visible.of_queries(dy);
  const Scores scores = scores_of(queries, keys, options, visible);

  Tensor P, P_sink;
  if (options.sinks.defined()) {
    const Tensor both = softmax_with_sink(scores.all, options.sinks, softmax);
    P = slice(both, -1, 0, n.keys);
    P_sink = slice(both, -1, n.keys, n.keys + 1);
  } else {
    P = softmax(scores.all, -1);
  }
  const Tensor dP = dropped(times_shared(upstream, transpose(values)), options.dropout, dropout_key);
  const Tensor D = sum(P * dP, -1, keepdims);
  const Tensor dS = P * (dP - D);

  Gradients gradients(6, {});
  const std::int64_t key_heads = n.key_heads;
  if (needs[0] || needs[1]) {
    Tensor dproduct = dS;
    if (options.softcap > 0) {
      const Tensor bent = scores.capped / options.softcap;
      dproduct = dS * (1.0 - bent * bent);
    }
    if (needs[0]) gradients[0] = visible.of_queries(times_shared(dproduct, keys)) * scale;
    if (needs[1]) gradients[1] = visible.of_keys(transposed_times(dproduct, queries, key_heads));
  }
  if (needs[2]) {
    const Tensor weights = dropped(P, options.dropout, dropout_key);
    gradients[2] = visible.of_keys(transposed_times(weights, upstream, key_heads));
  }
  if (needs[3]) gradients[3] = sum_to(dS, needs.shape(3));
  if (needs[4]) gradients[4] = sum_to(sum_diagonals(sum(dS, 0)), needs.shape(4));
  if (needs[5]) gradients[5] = -sum(P_sink * D, {0, 2, 3});
  return gradients;
}

}  // namespace fovea
