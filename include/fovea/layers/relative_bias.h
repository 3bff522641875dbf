#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops/attention.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

/// Positions as a bias of attention's scores that depends on the distance between query and key:
/// `attention(q, k, v, {.relative_bias = bias(Tq, Tk)})`.
namespace fovea {

/// T5's learned bias (Raffel et al. 2020): one number for each head and bucket of distances. Initially its
/// elements are draws from N(0, 0.02^2).
///
/// Shapes: -> (H, Tq + Tk - 1). Throws: ValueError if there are too few buckets, or no heads.
struct FOVEA_API RelativeBias {
  Tensor table;  ///< (buckets, H)
  RelativeBuckets buckets;

  RelativeBias(std::int64_t heads, Rng& rng, const RelativeBuckets& buckets = {});

  Tensor operator()(std::int64_t queries, std::int64_t keys) const;

  static void visit(const RelativeBias& self, Visitor& v) { v("table", self.table); }
};

/// Attention with linear biases (Press et al. 2022): -slope |distance|, with a fixed slope for each head. It
/// has no parameters.
///
/// Shapes: -> (H, Tq + Tk - 1). Throws: ValueError if there are no heads.
struct FOVEA_API Alibi {
  std::int64_t heads;

  explicit Alibi(std::int64_t heads);

  Tensor operator()(std::int64_t queries, std::int64_t keys, Dtype dtype = f32) const;

  static void visit(const Alibi&, Visitor&) {}
};

}  // namespace fovea
