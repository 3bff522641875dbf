#include "autograd/ops/attention.h"

#include <cmath>

#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "fovea/autograd/composed.h"
#include "fovea/autograd/training.h"

namespace fovea {
namespace {

using kernels::AttentionSizes;

void check_tensors(const Tensor& q, const Tensor& k, const Tensor& v) {
  detail::check_same_dtype("attention", q, k);
  if (v.defined()) detail::check_same_dtype("attention", q, v);
  if (q.rank() != 4 || k.rank() != 4 || (v.defined() && v.rank() != 4)) {
    fail<ShapeError>(
        "[attention] expects q (B, H, Tq, D), k (B, Hk, Tk, D), v (B, Hk, Tk, Dv), and got q {}, k {}, v {}: "
        "reshape what has no axis of heads",
        to_string(q.shape()), to_string(k.shape()), v.defined() ? to_string(v.shape()) : "none");
  }
  const auto refuse = [&](const char* what) {
    fail<ShapeError>("[attention] {}: q {}, k {}, v {}", what, to_string(q.shape()), to_string(k.shape()),
                     v.defined() ? to_string(v.shape()) : "none");
  };
  const bool values = v.defined();
  if (k.size(0) != q.size(0) || (values && v.size(0) != q.size(0))) refuse("the batches differ");
  if (k.size(3) != q.size(3)) refuse("queries and keys have heads of different sizes");
  if (values && v.size(2) != k.size(2)) refuse("there must be one value for each key");
  if (values && v.size(1) != k.size(1)) refuse("keys and values have different numbers of heads");
  if (k.size(1) != q.size(1) && (k.size(1) == 0 || q.size(1) % k.size(1) != 0)) {
    refuse("the number of key heads does not divide that of query heads");
  }
}

void check_numbers(const AttentionOptions& options) {
  detail::check_dropout("attention", options.dropout);
  if (!(options.softcap >= 0) || std::isinf(options.softcap)) {
    fail<ValueError>("[attention] softcap {}: it must be positive, or 0 for none", options.softcap);
  }
  if (options.scale && !std::isfinite(*options.scale)) {
    fail<ValueError>("[attention] scale {}: it must be finite", *options.scale);
  }
}

void check_biases(const Tensor& q, const AttentionSizes& n, const AttentionOptions& options) {
  for (const Tensor* x : {&options.bias, &options.relative, &options.sinks}) {
    if (x->defined()) detail::check_same_dtype("attention", q, *x);
  }
  const Shape scores{n.batch, n.heads, n.queries, n.keys};
  if (options.bias.defined() && broadcast_shapes("attention", options.bias.shape(), scores) != scores) {
    fail<ShapeError>("[attention] a bias of shape {} does not broadcast to (B, H, Tq, Tk) = {}",
                     to_string(options.bias.shape()), to_string(scores));
  }
  const Shape per_head{n.heads, n.distances()}, shared{1, n.distances()};
  if (const Tensor& r = options.relative; r.defined() && r.shape() != per_head && r.shape() != shared) {
    fail<ShapeError>("[attention] a bias by distance needs shape (H, Tq + Tk - 1) = {} or {}, and has {}",
                     to_string(per_head), to_string(shared), to_string(r.shape()));
  }
  if (options.sinks.defined() && options.sinks.shape() != Shape{n.heads}) {
    fail<ShapeError>("[attention] sinks need shape (H,) = {}, one per query head, and have {}",
                     to_string(Shape{n.heads}), to_string(options.sinks.shape()));
  }
}

}  // namespace

AttentionSizes detail::check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const AttentionOptions& options) {
  check_tensors(q, k, v);
  const AttentionSizes sizes{.batch = q.size(0),
                             .heads = q.size(1),
                             .key_heads = k.size(1),
                             .queries = q.size(2),
                             .keys = k.size(2),
                             .head_size = q.size(3),
                             .value_size = v.defined() ? v.size(3) : 0};
  check_numbers(options);
  check_biases(q, sizes, options);
  options.mask.check(sizes.batch, sizes.heads, sizes.queries, sizes.keys);
  return sizes;
}

double detail::scale_of(const Tensor& q, const AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
}

std::optional<std::uint64_t> detail::draw_dropout_key(const AttentionOptions& options) {
  if (options.dropout == 0 || !training()) return std::nullopt;
  return draw_key();
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  return composed::attention(q, k, v, options);
}

}  // namespace fovea
