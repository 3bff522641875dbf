#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/ref.h"
#include "fovea/autograd/base/shape.h"
#include "fovea/autograd/tensor/nested_list.h"

namespace fovea {

namespace detail {
struct Buffer;
FOVEA_API void retain(Buffer* buffer) noexcept;
FOVEA_API void release(Buffer* buffer) noexcept;
}  // namespace detail

/// A row-major array of T that carries no gradient and is not changed once it is made; copies share it.
/// What Indices and Bool have in common.
template <class T>
class NdArray {
 public:
  NdArray() = default;
  /// Moving copies, which costs little, so that no array is left with a shape and no elements.
  NdArray(const NdArray&) = default;
  NdArray& operator=(const NdArray&) = default;
  /// The values in row-major order. Throws: ShapeError if their number is not numel(shape).
  NdArray(const Shape& shape, std::span<const T> values);
  /// Values written by fill(T*), which is given room for numel(shape) of them.
  template <std::invocable<T*> Fill>
  NdArray(const Shape& shape, const Fill& fill) : NdArray(shape) {
    fill(writable());
  }

  const Shape& shape() const { return shape_; }
  std::size_t rank() const { return shape_.size(); }
  std::int64_t numel() const { return fovea::numel(shape_); }
  /// The size along an axis, which may be negative. Throws: ShapeError.
  std::int64_t size(Axis axis) const;
  const T* data() const;
  /// The i-th element in row-major order; not checked.
  T operator[](std::int64_t i) const { return data()[i]; }
  std::span<const T> values() const { return {data(), static_cast<std::size_t>(numel())}; }

 protected:
  explicit NdArray(const Shape& shape);
  /// The same values in another shape. Throws: ShapeError if it holds another number of elements.
  NdArray reshaped(const Shape& shape) const;

 private:
  T* writable();

  Shape shape_{0};
  detail::Ref<detail::Buffer> buffer_;
};

extern template class FOVEA_API NdArray<std::int64_t>;
extern template class FOVEA_API NdArray<std::uint8_t>;

/// Integers: token ids, targets, positions, argmax. An op that needs ids takes Indices, so it can't be handed
/// activations by mistake.
class Indices : public NdArray<std::int64_t> {
 public:
  Indices() = default;
  using NdArray::NdArray;
  /// The values that are written: {1, 2} is a vector, {{1}, {2}} a matrix of one column.
  /// Throws: ShapeError if rows differ in length.
  FOVEA_API Indices(std::initializer_list<NestedList<std::int64_t>> values);
  /// The same values in another shape. Throws: ShapeError if it holds another number of elements.
  Indices reshape(const Shape& shape) const { return Indices(reshaped(shape)); }

 private:
  explicit Indices(const NdArray& values) : NdArray(values) {}
};

/// True and false: what comparisons give, and what `where` and masks take. One byte an element, 0 or 1.
class Bool : public NdArray<std::uint8_t> {
 public:
  Bool() = default;
  using NdArray::NdArray;
  /// As of Indices.
  FOVEA_API Bool(std::initializer_list<NestedList<bool>> values);
  /// The same values in another shape. Throws: ShapeError if it holds another number of elements.
  Bool reshape(const Shape& shape) const { return Bool(reshaped(shape)); }

 private:
  explicit Bool(const NdArray& values) : NdArray(values) {}
};

/// Elementwise, with broadcasting. Throws: ShapeError.
FOVEA_API Bool operator&(const Bool& a, const Bool& b);
FOVEA_API Bool operator|(const Bool& a, const Bool& b);
FOVEA_API Bool operator!(const Bool& a);
/// Whether any element along an axis is true; the axis is kept with size 1. Throws: ShapeError.
FOVEA_API Bool any(const Bool& a, Axis axis);
FOVEA_API bool any(const Bool& a);
FOVEA_API bool all(const Bool& a);

FOVEA_API std::string to_string(const Indices& x);
FOVEA_API std::string to_string(const Bool& x);

}  // namespace fovea
