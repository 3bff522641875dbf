#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/layers/gpt.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/generate/sampling.h"

namespace fovea {

struct GenerateOptions {
  std::int64_t tokens = 100;  ///< the largest number of new tokens
  Sampling sampling = {};
  std::optional<std::int64_t> stop = {};  ///< generation ends after this token, which is part of the result
  bool cache = true;                      ///< keeps keys and values, instead of computing them again
  std::function<void(std::int64_t id)> on_token = {};  ///< called with each token when it is chosen
};

/// Continues a prompt, token by token. Returns the new tokens, without the prompt.
///
/// The model sees the last `context` ids, as its configuration says, and so only the end of a longer prompt.
/// With a cache, the prompt takes one pass and each token another one of length 1. Once there are more ids
/// than the context, the position of every id changes with each new token. Then nothing cached stays valid,
/// and each token takes a pass over the last `context` ids, with or without a cache.
///
/// The same Rng state gives the same tokens with and without a cache, unless two tokens are as close as
/// rounding. The model runs outside any graph and any TrainMode scope. `on_token` runs in the caller's
/// scopes; it may throw to end generation.
///
/// Throws: ValueError if the prompt is empty or `tokens` is negative; IndexError if an id of the prompt or
/// `stop` is outside [0, V); and as `token_probabilities`.
FOVEA_API std::vector<std::int64_t> generate(const Gpt& model, std::span<const std::int64_t> prompt,
                                             const GenerateOptions& options, Rng& rng);

/// Continues a prompt with any language model, which is called with the last `context` ids, (1, T). There is
/// no cache, whatever the options say. Throws: as above; ValueError if context is below 1; ShapeError if the
/// model's logits are not (1, T, V).
FOVEA_API std::vector<std::int64_t> generate(const LanguageModel& model, std::int64_t context,
                                             std::span<const std::int64_t> prompt,
                                             const GenerateOptions& options, Rng& rng);

}  // namespace fovea
