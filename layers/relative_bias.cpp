#include "fovea/layers/relative_bias.h"

#include "fovea/autograd/ops.h"
#include "layers/init.h"

namespace fovea {

RelativeBias::RelativeBias(std::int64_t heads, Rng& rng, const RelativeBuckets& buckets_)
    : buckets(buckets_) {
  check_sizes("RelativeBias", {buckets.buckets, heads});
  relative_buckets(1, 1, buckets);  // throws if the options are invalid
  table = parameter(0.02 * randn({buckets.buckets, heads}, rng));
}

Tensor RelativeBias::operator()(std::int64_t queries, std::int64_t keys) const {
  return transpose(embedding(table, relative_buckets(queries, keys, buckets)));
}

Alibi::Alibi(std::int64_t heads_) : heads(heads_) { check_sizes("Alibi", {heads}); }

Tensor Alibi::operator()(std::int64_t queries, std::int64_t keys, Dtype dtype) const {
  return alibi_bias(alibi_slopes(heads, dtype), queries, keys);
}

}  // namespace fovea
