#include "fovea/layers/multi_head_attention.h"

#include "layers/init.h"
#include "layers/tapped_attention.h"

namespace fovea {
namespace {

std::int64_t size_of_heads(std::int64_t d_model, std::int64_t heads,
                           const MultiHeadAttentionOptions& options) {
  if (options.head_size) return *options.head_size;
  if (heads > 0 && d_model % heads != 0) {
    fail<ValueError>(
        "[MultiHeadAttention] {} channels do not divide into {} heads: choose other sizes, or give the size "
        "of a head",
        d_model, heads);
  }
  return heads > 0 ? d_model / heads : 0;
}

void check_options(const MultiHeadAttentionOptions& options) {
  if (options.alibi && options.relative_bias) {
    fail<ValueError>(
        "[MultiHeadAttention] both ALiBi and relative biases are on: choose one scheme of positions");
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    fail<ValueError>("[MultiHeadAttention] dropout is {}: it must be a probability, from 0 to 1",
                     options.dropout);
  }
  if (!(options.softcap >= 0)) {
    fail<ValueError>("[MultiHeadAttention] softcap is {}: it must be 0 (none) or positive", options.softcap);
  }
  if (options.window) Mask::window(*options.window);  // throws if it is invalid
}

void check_input(const char* name, const Tensor& x, std::int64_t d_model) {
  if (x.rank() != 3 || x.size(2) != d_model) {
    fail<ShapeError>("[MultiHeadAttention] expects {} (B, T, {}), and got {}", name, d_model,
                     to_string(x.shape()));
  }
}

// x W + b, of shape (B, T, n D), reshaped to (B, n, T, D).
Tensor split_heads(const Tensor& x, const Tensor& W, const Tensor& b, std::int64_t n, std::int64_t d) {
  return transpose(reshape(linear(x, W, b), {x.size(0), x.size(1), n, d}), 1, 2);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t d_model, std::int64_t heads_, Rng& rng,
                                       const MultiHeadAttentionOptions& options)
    : window(options.window),
      heads(heads_),
      key_value_heads(options.key_value_heads.value_or(heads_)),
      head_size(size_of_heads(d_model, heads_, options)),
      softcap(options.softcap),
      dropout(options.dropout) {
  check_sizes("MultiHeadAttention", {d_model, heads, key_value_heads, head_size});
  if (heads % key_value_heads != 0) {
    fail<ValueError>(
        "[MultiHeadAttention] {} heads can't share {} heads of keys and values evenly: choose a divisor",
        heads, key_value_heads);
  }
  check_options(options);
  const std::int64_t q_size = numel({heads, head_size}), kv_size = numel({key_value_heads, head_size});
  Wq = uniform_weight(d_model, q_size, rng);
  Wk = uniform_weight(d_model, kv_size, rng);
  Wv = uniform_weight(d_model, kv_size, rng);
  Wo = uniform_weight(q_size, d_model, rng);
  if (options.bias) {
    bq = parameter(zeros({q_size}));
    bk = parameter(zeros({kv_size}));
    bv = parameter(zeros({kv_size}));
    bo = parameter(zeros({d_model}));
  }
  if (options.sinks) sinks = parameter(zeros({heads}));
  if (options.qk_norm) {
    q_norm.emplace(head_size);
    k_norm.emplace(head_size);
  }
  if (options.rotary) rotary.emplace(head_size, *options.rotary);
  if (options.alibi) alibi.emplace(heads);
  if (options.relative_bias) relative_bias.emplace(heads, rng, *options.relative_bias);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Mask& mask) const {
  check_input("x", x, Wq.size(0));
  return attend(queries(x, 0), keys(x, 0), values(x), mask);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Tensor& context, const Mask& mask) const {
  check_input("x", x, Wq.size(0));
  check_input("a context", context, Wk.size(0));
  return attend(queries(x, context.size(1) - x.size(1)), keys(context, 0), values(context), mask);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, KvCache& cache, const Mask& mask) const {
  check_input("x", x, Wq.size(0));
  const std::int64_t position = cache.length();
  const auto [k, v] = cache.append(keys(x, position), values(x));
  try {
    return attend(queries(x, position), k, v, mask);
  } catch (...) {
    cache.truncate(position);
    throw;
  }
}

KvCache MultiHeadAttention::cache(std::int64_t batch, std::int64_t capacity) const {
  return {batch, key_value_heads, capacity, head_size, Wk.dtype()};
}

Tensor MultiHeadAttention::queries(const Tensor& x, std::int64_t position) const {
  Tensor q = split_heads(x, Wq, bq, heads, head_size);
  if (q_norm) q = (*q_norm)(q);
  return rotary ? (*rotary)(q, position) : q;
}

Tensor MultiHeadAttention::keys(const Tensor& x, std::int64_t position) const {
  Tensor k = split_heads(x, Wk, bk, key_value_heads, head_size);
  if (k_norm) k = (*k_norm)(k);
  return rotary ? (*rotary)(k, position) : k;
}

Tensor MultiHeadAttention::values(const Tensor& x) const {
  return split_heads(x, Wv, bv, key_value_heads, head_size);
}

Tensor MultiHeadAttention::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) const {
  AttentionOptions options{.mask = window ? mask & Mask::window(*window) : mask,
                           .dropout = dropout,
                           .softcap = softcap,
                           .sinks = sinks};
  if (alibi) options.relative_bias = (*alibi)(q.size(2), k.size(2), q.dtype());
  if (relative_bias) options.relative_bias = (*relative_bias)(q.size(2), k.size(2));
  const Tensor outputs = tap(this, "heads", tapped_attention(this, q, k, v, options).output);
  const Shape concatenated{q.size(0), q.size(2), heads * head_size};
  return linear(reshape(transpose(outputs, 1, 2), concatenated), Wo, bo);
}

}  // namespace fovea
