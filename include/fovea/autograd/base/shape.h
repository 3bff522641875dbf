#pragma once

#include <cstdint>
#include <string>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/small_vector.h"

namespace fovea {

/// Sizes along each axis, outermost first; empty for a scalar. The letters used for sizes in every comment:
/// B batch, T time (Tq and Tk where queries and keys differ), C channels, H heads, D head size, V vocabulary.
using Shape = SmallVector<std::int64_t, 5>;

/// Elements to step over to move by one along each axis; 0 where an axis is broadcast.
using Strides = SmallVector<std::int64_t, 5>;

/// One or several axes, counted from the front or, when negative, from the back.
class Axes : public SmallVector<std::int64_t, 5> {
 public:
  Axes(std::int64_t axis) : SmallVector({axis}) {}
  Axes(std::initializer_list<std::int64_t> axes) : SmallVector(axes) {}
};

/// The number of elements: the product of the sizes, 1 for a scalar.
FOVEA_API std::int64_t numel(const Shape& shape);

/// Strides of a row-major (C order) tensor of that shape.
FOVEA_API Strides contiguous_strides(const Shape& shape);

/// The axis as 0 .. rank-1. Throws: ShapeError, naming `op`, if it is outside [-rank, rank).
FOVEA_API std::int64_t normalize_axis(const char* op, std::int64_t axis, std::size_t rank);

/// The shape that all of them broadcast to, aligned at the last axis.
/// Throws: ShapeError, naming `op` and both shapes, if an axis differs and neither size is 1.
FOVEA_API Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

/// "(2, 3)", as Python writes a tuple: "()" for a scalar, "(5,)" for one axis.
FOVEA_API std::string to_string(const Shape& shape);

}  // namespace fovea
