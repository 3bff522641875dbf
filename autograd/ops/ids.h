#pragma once

#include <cstdint>
#include <optional>

#include "autograd/base/fail.h"
#include "fovea/autograd/tensor/nd_array.h"

namespace fovea::detail {

/// "(3, 11)": the position of the i-th element of that shape in row-major order.
inline std::string position_of(std::int64_t i, const Shape& shape) {
  Shape position = shape;
  for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) position[axis] = i % shape[axis];
  return to_string(position);
}

/// How many ids are not `ignored`. `what` names one of them: "id", "target".
/// Throws: IndexError for the first of those that is outside [0, vocabulary).
inline std::int64_t count_ids(const char* op, const char* what, const Indices& ids, std::int64_t vocabulary,
                              std::optional<std::int64_t> ignored = {}) {
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    if (ids[i] == ignored) continue;
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      fail<IndexError>("[{}] {} {} at position {} is outside the vocabulary of {}", op, what, ids[i],
                       position_of(i, ids.shape()), vocabulary);
    }
    ++kept;
  }
  return kept;
}

}  // namespace fovea::detail
