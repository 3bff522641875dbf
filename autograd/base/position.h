#pragma once

#include <cstdint>

#include "fovea/autograd/base/shape.h"

namespace fovea::detail {

/// The position of an element, counted in row-major order, along each axis of that shape.
inline Shape position_of(std::int64_t element, const Shape& shape) {
  Shape position = shape;
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) {
    position[axis] = element % shape[axis];
  }
  return position;
}

}  // namespace fovea::detail
