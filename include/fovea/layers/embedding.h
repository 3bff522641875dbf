#pragma once

#include <cstdint>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// A learned vector for each id of a vocabulary. Initially its elements are draws from N(0, 1).
///
/// The padding id, if there is one, gives zeros whatever its row of the table holds. Its row is initially
/// zero, and its gradient is exactly 0, through `as_output` as well, so an optimizer leaves it at zero.
///
/// Shapes: ids (...) -> (..., C).
/// Throws: ValueError if a size is below 1; IndexError naming the position and value of an id outside [0, V).
struct FOVEA_API Embedding {
  Tensor table;  ///< (V, C)
  std::optional<std::int64_t> padding;

  Embedding(std::int64_t vocabulary, std::int64_t d_model, Rng& rng, const EmbeddingOptions& options = {});

  Tensor operator()(const Indices& ids) const;

  /// Uses the same table as an output layer, tied to the input (Press & Wolf 2017): logits = x table^T. The
  /// logit of the padding id is 0. Shapes: x (..., C) -> (..., V).
  Tensor as_output(const Tensor& x) const;

  static void visit(const Embedding& self, Visitor& v) { v("table", self.table); }
};

}  // namespace fovea
