#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/small_vector.h"

namespace fovea {

/// Sizes along each axis, outermost first; empty for a scalar. The letters used for sizes in every comment:
/// B batch, T time (Tq and Tk where queries and keys differ), C channels, H heads, D head size, V vocabulary.
using Shape = SmallVector<std::int64_t, 5>;

/// Elements to step over to move by one along each axis; 0 where an axis is broadcast.
using Strides = SmallVector<std::int64_t, 5>;

namespace detail {
/// A type of whole numbers: an integer, but no bool, or an enum that is one.
template <class I>
concept WholeNumber = !std::same_as<I, bool> &&
                      (std::integral<I> || (std::is_enum_v<I> && std::convertible_to<I, std::int64_t>));
}  // namespace detail

/// A whole number as an argument: an axis, a position, a size. A double or a bool does not compile, as C++
/// would make a whole number of it silently, and max(x, 0.0) would be the largest along axis 0.
class Integer {
 public:
  template <detail::WholeNumber I>
  constexpr Integer(I value)
      : value_(std::in_range<std::int64_t>(+value) ? static_cast<std::int64_t>(value)
                                                   : std::numeric_limits<std::int64_t>::max()) {}
  constexpr operator std::int64_t() const { return value_; }

 private:
  std::int64_t value_;
};

/// One axis, counted from the front or, when negative, from the back.
using Axis = Integer;

/// One or several axes.
class Axes : public SmallVector<std::int64_t, 5> {
 public:
  template <std::convertible_to<Axis> A>
  Axes(A axis) requires(!std::derived_from<A, Axes>) : SmallVector({Axis(axis)}) {}
  Axes(std::initializer_list<std::int64_t> axes) : SmallVector(axes) {}
};

/// The most axes and elements that an array can have: sets of axes are the bits of a word, and the bytes of
/// all elements, whatever their type, can be counted.
inline constexpr std::size_t most_axes = 63;
inline constexpr std::int64_t most_elements = std::int64_t{1} << 58;

/// The number of elements: the product of the sizes, 1 for a scalar. Every shape of an array goes through
/// here when it is made, so no product of its sizes overflows later.
/// Throws: ShapeError for a negative size, more than 63 axes, or more than 2^58 elements (sizes of 0 count as
/// 1 there, so that strides do not overflow either).
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
