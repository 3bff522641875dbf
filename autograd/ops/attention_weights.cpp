#include <algorithm>
#include <span>
#include <vector>

#include "autograd/base/fail.h"
#include "autograd/ops/attention.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

// The given positions of an axis, in this order. An axis of size 1 repeats, and stays as it is.
Tensor select_along(const Tensor& x, std::int64_t axis, std::span<const std::int64_t> positions) {
  if (!x.defined() || x.size(axis) == 1) return x;
  std::vector<Tensor> parts;
  for (const std::int64_t at : positions) parts.push_back(slice(x, axis, at, at + 1));
  return concat(parts, axis);
}

// The given heads of a mask (B, H or 1, Tq, Tk).
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

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                         const Indices& heads) {
  const kernels::AttentionSizes n = detail::check_attention(q, k, {}, options);
  std::vector<std::int64_t> key_heads;
  for (const std::int64_t head : heads.values()) {
    if (head < 0 || head >= n.heads) {
      fail<IndexError>("[attention_weights] head {} was asked for: there are {} heads, numbered from 0", head,
                       n.heads);
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

}  // namespace fovea
