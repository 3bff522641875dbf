#include "fovea/autograd/tensor/nd_array.h"

#include <algorithm>
#include <vector>

#include "autograd/base/fail.h"
#include "autograd/kernels/strided.h"
#include "autograd/tensor/tensor_impl.h"

namespace fovea {
namespace {

template <class Element, class T>
std::vector<Element> elements_of(const NestedList<T>& values) {
  std::vector<Element> elements;
  values.append_to(elements);
  return elements;
}

template <class F>
Bool combine(const char* name, const Bool& a, const Bool& b, F f) {
  const Shape shape = broadcast_shapes(name, a.shape(), b.shape());
  const Strides of_a = kernels::broadcast_strides(a.shape(), contiguous_strides(a.shape()), shape);
  const Strides of_b = kernels::broadcast_strides(b.shape(), contiguous_strides(b.shape()), shape);
  const kernels::Loops<2> loops(shape, {&of_a, &of_b});
  return Bool(shape, [&](std::uint8_t* out) {
    loops.for_each_piece(0, loops.size(), [&](const auto& offsets, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        *out++ = f(a[offsets[0] + i * loops.step[0]], b[offsets[1] + i * loops.step[1]]);
      }
    });
  });
}

template <class T>
std::string print(const NdArray<T>& x, std::int64_t begin, std::size_t axis) {
  if (axis == x.rank()) return fmt::format("{}", x[begin]);
  const std::int64_t below = numel(Shape(x.shape().begin() + axis + 1, x.shape().end()));
  std::vector<std::string> parts;
  for (std::int64_t i = 0; i < x.shape()[axis]; ++i) parts.push_back(print(x, begin + i * below, axis + 1));
  const std::string separator = axis + 1 == x.rank() ? ", " : ",\n" + std::string(axis + 1, ' ');
  return fmt::format("[{}]", fmt::join(parts, separator));
}

}  // namespace

template <class T>
NdArray<T>::NdArray(const Shape& shape)
    : shape_(shape), buffer_(detail::Buffer::allocate(shape, sizeof(T))) {}

template <class T>
NdArray<T>::NdArray(const Shape& shape, std::span<const T> values) : NdArray(shape) {
  if (static_cast<std::int64_t>(values.size()) != numel()) {
    fail<ShapeError>("[nd_array] {} values for shape {}, which holds {}", values.size(), to_string(shape),
                     numel());
  }
  std::ranges::copy(values, writable());
}

template <class T>
std::int64_t NdArray<T>::size(Axis axis) const {
  return shape_[static_cast<std::size_t>(normalize_axis("size", axis, rank()))];
}

template <class T>
const T* NdArray<T>::data() const {
  return buffer_ ? reinterpret_cast<const T*>(buffer_->data()) : nullptr;
}

template <class T>
T* NdArray<T>::writable() {
  return reinterpret_cast<T*>(buffer_->data());
}

template <class T>
NdArray<T> NdArray<T>::reshaped(const Shape& shape) const {
  if (fovea::numel(shape) != numel()) {
    fail<ShapeError>("[reshape] {} elements of shape {} do not fit shape {}", numel(), to_string(shape_),
                     to_string(shape));
  }
  NdArray result = *this;
  result.shape_ = shape;
  return result;
}

template class NdArray<std::int64_t>;
template class NdArray<std::uint8_t>;

Indices::Indices(std::initializer_list<NestedList<std::int64_t>> values)
    : NdArray(NestedList(values).shape("indices"),
              std::span<const std::int64_t>(elements_of<std::int64_t>(NestedList(values)))) {}

Bool::Bool(std::initializer_list<NestedList<bool>> values)
    : NdArray(NestedList(values).shape("bool"),
              std::span<const std::uint8_t>(elements_of<std::uint8_t>(NestedList(values)))) {}

Bool operator&(const Bool& a, const Bool& b) {
  return combine("&", a, b, [](std::uint8_t u, std::uint8_t v) -> std::uint8_t { return u & v; });
}
Bool operator|(const Bool& a, const Bool& b) {
  return combine("|", a, b, [](std::uint8_t u, std::uint8_t v) -> std::uint8_t { return u | v; });
}
Bool operator!(const Bool& a) {
  return Bool(a.shape(), [&](std::uint8_t* out) {
    for (const std::uint8_t value : a.values()) *out++ = !value;
  });
}

Bool any(const Bool& a, Axis axis) {
  const auto at = static_cast<std::size_t>(normalize_axis("any", axis, a.rank()));
  Shape shape = a.shape();
  shape[at] = 1;
  const std::int64_t along = a.shape()[at];
  const std::int64_t inner = numel(Shape(a.shape().begin() + at + 1, a.shape().end()));
  return Bool(shape, [&](std::uint8_t* out) {
    const std::int64_t n = numel(shape);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t first = i / inner * along * inner + i % inner;
      out[i] = 0;
      for (std::int64_t k = 0; k < along; ++k) out[i] |= a[first + k * inner];
    }
  });
}
bool any(const Bool& a) {
  return std::ranges::any_of(a.values(), [](std::uint8_t value) { return value != 0; });
}
bool all(const Bool& a) {
  return std::ranges::all_of(a.values(), [](std::uint8_t value) { return value != 0; });
}

std::string to_string(const Indices& x) { return print(x, 0, 0); }
std::string to_string(const Bool& x) { return print(x, 0, 0); }

}  // namespace fovea
