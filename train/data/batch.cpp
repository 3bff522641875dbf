#include "fovea/train/data/batch.h"

#include <algorithm>

#include "autograd/base/fail.h"

namespace fovea {

Batch next_token_batch(std::span<const std::vector<std::int64_t>> sequences, std::int64_t padding) {
  return next_token_batch(sequences, padding, padding);
}

Batch next_token_batch(std::span<const std::vector<std::int64_t>> sequences, std::int64_t padding,
                       std::int64_t target_padding) {
  if (sequences.empty()) fail<ValueError>("[next_token_batch] there are no sequences: give at least 1");
  std::size_t rows = 0;
  for (const auto& sequence : sequences) {
    if (sequence.size() < 2) {
      fail<ValueError>(
          "[next_token_batch] sequence {} has {} ids: at least 2 are needed, so that one can predict the "
          "next",
          &sequence - sequences.data(), sequence.size());
    }
    rows = std::max(rows, sequence.size() - 1);
  }
  std::vector<std::int64_t> inputs(sequences.size() * rows, padding);
  std::vector<std::int64_t> targets(inputs.size(), target_padding);
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const auto at = static_cast<std::ptrdiff_t>(b * rows);
    std::copy(sequences[b].begin(), sequences[b].end() - 1, inputs.begin() + at);
    std::copy(sequences[b].begin() + 1, sequences[b].end(), targets.begin() + at);
  }
  const Shape shape{static_cast<std::int64_t>(sequences.size()), static_cast<std::int64_t>(rows)};
  return {Indices(shape, inputs), Indices(shape, targets)};
}

}  // namespace fovea
