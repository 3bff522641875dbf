#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/autograd/base/shape.h"

namespace fovea::detail {

/// The gradient of one tensor, some elements of which are wrong.
struct WrongGradient {
  const Shape& shape;
  std::span<const double> x, analytic, numeric;
  double limit;  // smaller differences between analytic and numeric are ignored

  /// The derivatives of every output element with respect to one element of the tensor. `weights` contracts
  /// them.
  struct Column {
    std::size_t element;
    std::span<const double> by_output;
  };
  std::span<const Column> columns;
  const Shape& output_shape;  // of the first output; further outputs in by_output play no role in hints
  std::span<const double> weights;
};

/// Says what the pattern of a wrong gradient suggests as its cause, or is empty.
std::string hint(const WrongGradient& gradient);

}  // namespace fovea::detail
