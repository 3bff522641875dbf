#pragma once

#include <array>
#include <cstdint>

#include "fovea/autograd/base/shape.h"

// Loops over strided arrays, given by their shapes and strides.
namespace fovea::kernels {

inline bool is_contiguous(const Shape& shape, const Strides& strides) {
  std::int64_t expected = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

/// The strides of an array of shape `shape` when it is broadcast to the shape `to`: 0 along axes that repeat.
inline Strides broadcast_strides(const Shape& shape, const Strides& strides, const Shape& to) {
  Strides result(to.size(), 0);
  for (std::size_t back = 1; back <= shape.size(); ++back) {
    const std::size_t axis = shape.size() - back;
    if (shape[axis] != 1) result[to.size() - back] = strides[axis];
  }
  return result;
}

/// Nested loops over N arrays of one shape. Neighbouring axes are joined where the strides of all arrays
/// allow it, so that contiguous arrays of any rank become a single row.
template <std::size_t N>
struct Loops {
  std::int64_t row_length = 1;
  std::int64_t rows = 1;
  std::array<std::int64_t, N> step{};    // of each array along a row
  Shape outer;                           // the sizes of the loops around a row, the outermost first
  std::array<Strides, N> outer_strides;  // of each array along these

  /// For N contiguous arrays of n elements each.
  explicit Loops(std::int64_t n) : row_length(n) { step.fill(1); }

  Loops(const Shape& shape, const std::array<const Strides*, N>& strides) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      bool joins = !outer.empty();
      for (std::size_t k = 0; joins && k < N; ++k) {
        joins = outer_strides[k].back() == shape[axis] * (*strides[k])[axis];
      }
      if (joins) {
        outer.back() *= shape[axis];
      } else {
        outer.push_back(shape[axis]);
      }
      for (std::size_t k = 0; k < N; ++k) {
        if (joins) outer_strides[k].pop_back();
        outer_strides[k].push_back((*strides[k])[axis]);
      }
    }
    if (!outer.empty()) {
      row_length = outer.back();
      outer.pop_back();
      for (std::size_t k = 0; k < N; ++k) {
        step[k] = outer_strides[k].back();
        outer_strides[k].pop_back();
      }
    }
    rows = numel(outer);
  }

  std::int64_t size() const { return rows * row_length; }

  /// Calls f(offsets, length) for the elements [begin, end) in row-major order, a row or a part of one at a
  /// time. offsets[k] is where the part begins in array k.
  template <class F>
  void for_each_piece(std::int64_t begin, std::int64_t end, F&& f) const {
    if (begin >= end) return;
    std::int64_t row = begin / row_length;
    std::int64_t column = begin % row_length;
    Shape position(outer.size(), 0);
    std::array<std::int64_t, N> base{};
    for (std::size_t axis = outer.size(); axis-- > 0; row /= outer[axis]) {
      position[axis] = row % outer[axis];
      for (std::size_t k = 0; k < N; ++k) base[k] += position[axis] * outer_strides[k][axis];
    }
    while (begin < end) {
      const std::int64_t length = std::min(row_length - column, end - begin);
      std::array<std::int64_t, N> offsets;
      for (std::size_t k = 0; k < N; ++k) offsets[k] = base[k] + column * step[k];
      f(offsets, length);
      begin += length;
      column = 0;
      for (std::size_t axis = outer.size(); axis-- > 0;) {
        for (std::size_t k = 0; k < N; ++k) base[k] += outer_strides[k][axis];
        if (++position[axis] < outer[axis]) break;
        for (std::size_t k = 0; k < N; ++k) base[k] -= outer[axis] * outer_strides[k][axis];
        position[axis] = 0;
      }
    }
  }
};

/// Calls f(offset) for every element of an array, in row-major order.
template <class F>
void for_each_offset(const Shape& shape, const Strides& strides, F&& f) {
  const Loops<1> loops(shape, {&strides});
  loops.for_each_piece(0, loops.size(), [&](const std::array<std::int64_t, 1>& offset, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) f(offset[0] + i * loops.step[0]);
  });
}

}  // namespace fovea::kernels
