#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// Any model of language: ids (B, T) -> logits (B, T, V).
using LanguageModel = std::function<Tensor(const Indices& ids)>;

/// What a language model trains on in one step: at each row the ids so far, and the id that comes next.
struct Batch {
  Indices inputs;   ///< (B, T)
  Indices targets;  ///< (B, T): the input one step later; `padding` beyond the end, to be ignored by the loss
};

/// A target that a loss is told to ignore: cross_entropy(logits, targets, {.ignore_index = ignored_target}).
inline constexpr std::int64_t ignored_target = -1;

/// Sequences of ids as one batch, padded at the end to the longest of them. A sequence of n ids has n - 1
/// rows. Throws: ValueError if there is no sequence, or one of them has no next id to predict.
FOVEA_API Batch next_token_batch(std::span<const std::vector<std::int64_t>> sequences, std::int64_t padding);
/// The same with targets padded otherwise than inputs, which must be ids that the model knows.
FOVEA_API Batch next_token_batch(std::span<const std::vector<std::int64_t>> sequences, std::int64_t padding,
                                 std::int64_t target_padding);

}  // namespace fovea
