#pragma once

#include <cstdint>
#include <optional>

#include "autograd/base/fail.h"
#include "autograd/base/position.h"
#include "fovea/autograd/tensor/nd_array.h"

namespace fovea::detail {

/// How many ids are not `ignored`. `what` names one of them: "id", "target".
/// Throws: IndexError for the first of those that is outside [0, vocabulary).
inline std::int64_t count_ids(const char* op, const char* what, const Indices& ids, std::int64_t vocabulary,
                              std::optional<std::int64_t> ignored = {}) {
  std::int64_t kept = 0;
  const std::int64_t n = ids.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    if (ids[i] == ignored) continue;
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      fail<IndexError>("[{}] {} {} at position {} is outside the vocabulary of {}", op, what, ids[i],
                       to_string(position_of(i, ids.shape())), vocabulary);
    }
    ++kept;
  }
  return kept;
}

}  // namespace fovea::detail
