#pragma once

#include <cstdint>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/tensor.h"
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

/// Where a model's order of words comes from: added to them (learned, sine-cosine), or brought by attention
/// (rotary, ALiBi, relative). Without, a causal model can still tell by how much each position sees
/// (Kazemnejad et al. 2023).
enum class Positions : std::uint8_t { none, learned, sine_cosine, rotary, alibi, relative };

/// What a model adds to its words: a learned vector for each position; sine-cosine positions, to words times
/// sqrt(C) (Vaswani et al. 2017, section 3.4); or nothing, where attention brings the positions.
///
/// Shapes: x (..., T, C) -> the same. Throws: as LearnedPositions and SineCosinePositions.
struct FOVEA_API AddedPositions {
  std::optional<LearnedPositions> learned;
  std::optional<SineCosinePositions> sine_cosine;

  /// Throws: ValueError if a size is below 1.
  AddedPositions(Positions positions, std::int64_t max_length, std::int64_t d_model, Rng& rng);

  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  /// "table" if they are learned, and nothing otherwise.
  static void visit(const AddedPositions& self, Visitor& v) {
    if (self.learned) LearnedPositions::visit(*self.learned, v);
  }
};

}  // namespace fovea
