#pragma once

#include <cstdint>

#include "fovea/autograd/dense.h"
#include "fovea/autograd/rng.h"
#include "fovea/autograd/tensor.h"
#include "fovea/export.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// A learned vector for each id of a vocabulary. At first its elements are draws from N(0, 1).
///
/// Shapes: ids (...) -> (..., C).
/// Throws: ValueError if a size is below 1; IndexError naming the position and value of an id outside [0, V).
struct FOVEA_API Embedding {
  Tensor table;  ///< (V, C)

  Embedding(std::int64_t vocabulary, std::int64_t d_model, Rng& rng);

  Tensor operator()(const Indices& ids) const;

  static void visit(const Embedding& self, Visitor& v) { v("table", self.table); }
};

}  // namespace fovea
