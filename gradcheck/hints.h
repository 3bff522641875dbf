#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/autograd/base/shape.h"

namespace fovea::detail {

/// The gradient of one tensor, with some elements wrong.
struct WrongGradient {
  const Shape& shape;
  std::span<const double> x, analytic, numeric;
  double limit;  // below which a difference means nothing

  /// For some elements of the tensor: the derivative of each output element by itself, and the weights it is
  /// contracted with.
  struct Column {
    std::size_t element;
    std::span<const double> by_output;
  };
  std::span<const Column> columns;
  const Shape& output_shape;  // of the first output; what follows it in by_output is left alone
  std::span<const double> weights;
};

/// What the pattern of a wrong gradient says about its cause, or nothing.
std::string hint(const WrongGradient& gradient);

}  // namespace fovea::detail
