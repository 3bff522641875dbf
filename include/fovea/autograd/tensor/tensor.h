#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "fovea/autograd/base/dtype.h"
#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/ref.h"
#include "fovea/autograd/base/shape.h"
#include "fovea/autograd/tensor/nested_list.h"

namespace fovea {

class Rng;

namespace detail {
struct TensorAccess;
struct TensorImpl;
FOVEA_API void retain(TensorImpl* impl) noexcept;
FOVEA_API void release(TensorImpl* impl) noexcept;
}  // namespace detail

/// A handle to an n-dimensional array of f32 or f64 and to its place in the graph.
///
/// Ownership: copying a Tensor shares the same array and gradient; `clone` copies the elements. Views
/// (reshape, transpose, slice, broadcast) share the array as well. Ops never write into their inputs.
///
/// Threads: any number of threads may read one tensor, and build and run graphs that share leaves. Writing
/// (`mutable_data`, optimizers, `load`) must not overlap with reading.
class FOVEA_API Tensor {
 public:
  /// An undefined handle, without value or shape. Everything but `defined`, `is_same` and assignment throws.
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  /// Only a named handle can be assigned to: `x[0] = y` would change nothing, and does not compile.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  ~Tensor() = default;

  bool defined() const noexcept { return static_cast<bool>(impl_); }

  const Shape& shape() const;
  const Strides& strides() const;
  Dtype dtype() const;
  std::size_t rank() const { return shape().size(); }
  std::int64_t numel() const;
  /// The size along an axis, which may be negative. Throws: ShapeError.
  std::int64_t size(Axis axis) const;
  bool is_contiguous() const;

  /// The elements, starting at the first; step by `strides()`.
  /// Throws: DtypeError if T is not the type of the elements.
  template <class T>
  const T* data() const;

  /// The same for writing. Raises the version of the shared array, so that a graph that saved it says so
  /// instead of using the wrong values.
  /// Throws: DtypeError; GraphError if an op computed this tensor and recorded it.
  template <class T>
  T* mutable_data();

  /// The part at position i of the first axis, as a view that is recorded: `select(x, 0, i)`. A negative i
  /// counts from the end. Throws: IndexError; ShapeError for a scalar.
  Tensor operator[](Integer i) const;

  /// The element of a tensor that has exactly one. Throws: ShapeError.
  double item() const;
  /// The element at a position. Throws: IndexError.
  double at(std::initializer_list<std::int64_t> position) const;
  /// All elements in row-major order.
  std::vector<double> to_vector() const;

  /// A tensor with the same array outside the graph: no gradient flows through it.
  Tensor detach() const;

  /// Whether gradients flow to or through this tensor.
  bool requires_grad() const;
  /// Makes a leaf of the graph: `backward` adds into its `grad()`. Turning it off forgets the gradient.
  /// Throws: GraphError if an op computed and recorded this tensor.
  Tensor& set_requires_grad(bool on = true);
  bool is_leaf() const;

  /// The gradient that backward passes have added up so far; undefined before the first one.
  /// Throws: GraphError for a recorded non-leaf: use `grad(outputs, inputs)` for those.
  Tensor grad() const;
  /// Replaces the gradient of a leaf (clipping does); undefined clears it.
  /// Throws: GraphError, ShapeError.
  void set_grad(Tensor gradient) const;

  /// The number of times that the shared array has been written to.
  std::uint64_t version() const;

  /// Whether both are handles of one tensor: the same elements, gradient and place in the graph.
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }

 private:
  friend struct detail::TensorAccess;
  explicit Tensor(detail::Ref<detail::TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  detail::Ref<detail::TensorImpl> impl_;
};

template <>
FOVEA_API const float* Tensor::data<float>() const;
template <>
FOVEA_API const double* Tensor::data<double>() const;
template <>
FOVEA_API float* Tensor::mutable_data<float>();
template <>
FOVEA_API double* Tensor::mutable_data<double>();

/// A tensor of that shape whose elements are not set yet.
FOVEA_API Tensor empty(const Shape& shape, Dtype dtype = f32);
FOVEA_API Tensor full(const Shape& shape, double value, Dtype dtype = f32);
FOVEA_API Tensor zeros(const Shape& shape, Dtype dtype = f32);
FOVEA_API Tensor ones(const Shape& shape, Dtype dtype = f32);

/// A scalar, of shape ().
FOVEA_API Tensor scalar(double value, Dtype dtype = f32);
/// A tensor with the elements that are written: {1, 2} is a vector, {{1}, {2}} a matrix of one column.
/// Throws: ShapeError if rows differ in length.
FOVEA_API Tensor tensor(const NestedList<double>& values, Dtype dtype = f32);
/// The values in row-major order. Throws: ShapeError if their number is not numel(shape).
FOVEA_API Tensor from_values(std::span<const double> values, const Shape& shape, Dtype dtype = f32);

/// 0, 1, ..., n - 1.
FOVEA_API Tensor arange(Integer n, Dtype dtype = f32);
/// The identity matrix. Shapes: -> (size, size).
FOVEA_API Tensor eye(Integer size, Dtype dtype = f32);

/// Independent draws from N(0, 1), or uniform in [low, high). The same on every platform for one Rng state.
/// Throws: ValueError if low > high, or if a bound is not finite in the dtype.
FOVEA_API Tensor randn(const Shape& shape, Rng& rng, Dtype dtype = f32);
FOVEA_API Tensor uniform(const Shape& shape, Rng& rng, double low = 0, double high = 1, Dtype dtype = f32);

/// The elements as NumPy prints them: aligned, summarised with "..." beyond 1,000 elements.
FOVEA_API std::string to_string(const Tensor& x);

}  // namespace fovea
