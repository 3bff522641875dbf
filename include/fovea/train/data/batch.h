#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// A language model: ids (B, T) -> logits (B, T, V).
using LanguageModel = std::function<Tensor(const Indices& ids)>;

/// Sequences that a language model trains on in one step. At each position, the target is the next id.
struct Batch {
  Indices inputs;  ///< (B, T)
  Indices
      targets;  ///< (B, T): the inputs one step later; beyond a sequence's end, padding that a loss ignores
};

/// The target of a position that is not judged: cross_entropy(logits, targets, {.ignore_index =
/// ignored_target}).
inline constexpr std::int64_t ignored_target = -1;

/// Makes a batch of sequences of ids. A sequence of n ids fills n - 1 positions, and those up to the longest
/// sequence's get `padding`, in inputs and targets.
/// Throws: ValueError if there is no sequence or one has less than 2 ids.
FOVEA_API Batch next_token_batch(std::span<const std::vector<std::int64_t>> sequences, std::int64_t padding);
/// Makes the same batch, with another padding of the targets. Inputs must be padded with an id of the
/// vocabulary.
FOVEA_API Batch next_token_batch(std::span<const std::vector<std::int64_t>> sequences, std::int64_t padding,
                                 std::int64_t target_padding);

}  // namespace fovea
