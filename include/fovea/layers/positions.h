#pragma once

#include <cstdint>

#include "fovea/autograd/rng.h"
#include "fovea/autograd/tensor.h"
#include "fovea/export.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// The position code of Vaswani et al. 2017, section 3.5, for positions t from `offset` to offset + T - 1:
///   P(t, 2i) = sin(t / 10000^(2i/C)),  P(t, 2i + 1) = cos(t / 10000^(2i/C)).
///
/// An odd C ends with a sine that has no cosine.
/// Shapes: -> (T, C). Throws: ShapeError if a size is negative.
FOVEA_API Tensor sine_cosine_positions(std::int64_t length, std::int64_t d_model, Dtype dtype = f32,
                                       std::int64_t offset = 0);

/// Adds sine-cosine positions to a sequence of any length. It has no tensors.
///
/// Shapes: x (..., T, C) -> the same. Throws: ShapeError if x has another C, or less than two axes.
struct FOVEA_API SineCosinePositions {
  std::int64_t d_model;

  /// Throws: ValueError if d_model is below 1.
  explicit SineCosinePositions(std::int64_t d_model);

  /// The first of the T has position `offset`: pass how many a cache holds already.
  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  static void visit(const SineCosinePositions&, Visitor&) {}
};

/// Adds a learned vector for each position. At first its elements are draws from N(0, 1).
///
/// Shapes: x (..., T, C) -> the same. Throws: ShapeError if a position is beyond the table, x has another C,
/// or less than two axes.
struct FOVEA_API LearnedPositions {
  Tensor table;  ///< (longest T, C)

  /// Throws: ValueError if a size is below 1.
  LearnedPositions(std::int64_t max_length, std::int64_t d_model, Rng& rng);

  /// The first of the T has position `offset`: pass how many a cache holds already.
  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  static void visit(const LearnedPositions& self, Visitor& v) { v("table", self.table); }
};

}  // namespace fovea
