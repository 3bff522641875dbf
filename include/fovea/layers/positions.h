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

/// Adds sine-cosine positions to a sequence of any length. It has no parameters.
///
/// Shapes: x (..., T, C) -> the same. Throws: ShapeError if x has another C, or less than two axes.
struct FOVEA_API SineCosinePositions {
  std::int64_t d_model;

  /// Throws: ValueError if d_model is below 1.
  explicit SineCosinePositions(std::int64_t d_model);

  /// `offset` is the position of the first row of x: while generating, the number of positions in the cache.
  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  static void visit(const SineCosinePositions&, Visitor&) {}
};

/// Adds a learned vector for each position. Initially its elements are draws from N(0, 1).
///
/// Shapes: x (..., T, C) -> the same. Throws: ShapeError if a position is beyond the table, x has another C,
/// or less than two axes.
struct FOVEA_API LearnedPositions {
  Tensor table;  ///< (longest T, C)

  /// Throws: ValueError if a size is below 1.
  LearnedPositions(std::int64_t max_length, std::int64_t d_model, Rng& rng);

  /// `offset` is the position of the first row of x: while generating, the number of positions in the cache.
  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  static void visit(const LearnedPositions& self, Visitor& v) { v("table", self.table); }
};

/// How a model knows the order of its tokens. Learned and sine-cosine positions are added to the token
/// embeddings; rotary, ALiBi and relative positions act inside attention. With `none`, a causal model can
/// still tell positions apart by how many tokens each one sees (Kazemnejad et al. 2023).
enum class Positions : std::uint8_t { none, learned, sine_cosine, rotary, alibi, relative };

/// The positions that a model adds to its token embeddings x:
///   learned:      x + table[t],
///   sine-cosine:  sqrt(C) x + P(t), as in Vaswani et al. 2017, section 3.4,
///   all others:   x, because positions act inside attention, if at all.
///
/// Shapes: x (..., T, C) -> the same. Throws: as LearnedPositions and SineCosinePositions.
struct FOVEA_API PositionEmbedding {
  std::optional<LearnedPositions> learned;
  std::optional<SineCosinePositions> sine_cosine;

  /// Throws: ValueError if a size is below 1.
  PositionEmbedding(Positions positions, std::int64_t max_length, std::int64_t d_model, Rng& rng);

  Tensor operator()(const Tensor& x, std::int64_t offset = 0) const;

  /// Only learned positions have a tensor, "table".
  static void visit(const PositionEmbedding& self, Visitor& v) {
    if (self.learned) LearnedPositions::visit(*self.learned, v);
  }
};

}  // namespace fovea
