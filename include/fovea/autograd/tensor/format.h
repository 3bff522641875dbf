#pragma once

#include <fmt/format.h>

#include "fovea/autograd/base/shape.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"

/// `fmt::print("{}", x)` for shapes, tensors, Indices and Bool.
namespace fovea::detail {
template <class T>
struct Printable : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const T& x, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(to_string(x), context);
  }
};
}  // namespace fovea::detail

template <>
struct fmt::formatter<fovea::Shape> : fovea::detail::Printable<fovea::Shape> {};
template <>
struct fmt::formatter<fovea::Tensor> : fovea::detail::Printable<fovea::Tensor> {};
template <>
struct fmt::formatter<fovea::Indices> : fovea::detail::Printable<fovea::Indices> {};
template <>
struct fmt::formatter<fovea::Bool> : fovea::detail::Printable<fovea::Bool> {};
