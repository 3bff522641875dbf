#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/gpt.h"
#include "fovea/train/data/batch.h"

namespace fovea {

/// How the next token is chosen among a model's logits. The options apply in this order, each to what the one
/// before has left, scaled to add up to 1; the likeliest token always stays. Of tokens that are equally
/// likely, the lower id comes first.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; 0: the likeliest token (greedy)
  std::int64_t top_k = 0;  ///< among the k likeliest only; 0: all
  double top_p = 1;        ///< among the fewest whose probabilities add up to p (Holtzman et al. 2020)
  double min_p = 0;  ///< among those at least this times as likely as the likeliest (Nguyen et al. 2024)
};

/// The distribution that a token is drawn from, by id: softmax(logits / temperature), without what the other
/// options rule out.
///
/// Shapes: logits (V,) -> V probabilities. Throws: ShapeError if logits have other axes, or V is 0;
/// NonFiniteError if one is NaN or +inf, or all are -inf; ValueError unless temperature is finite and 0 or
/// more, top_k 0 or more, top_p in (0, 1] and min_p in [0, 1].
FOVEA_API std::vector<double> token_probabilities(const Tensor& logits, const Sampling& sampling = {});

/// Draws a token from `token_probabilities`: the first, by id, at which they add up to more than a uniform
/// draw. That is one draw of the Rng, greedy or not. Throws: as token_probabilities.
FOVEA_API std::int64_t sample_token(const Tensor& logits, const Sampling& sampling, Rng& rng);

struct GenerateOptions {
  std::int64_t tokens = 100;  ///< at most so many
  Sampling sampling = {};
  std::optional<std::int64_t> stop = {};  ///< the token to end with: it is the last of the result
  bool cache = true;                      ///< keep keys and values instead of computing them again
  std::function<void(std::int64_t id)> on_token = {};  ///< called with each token as it is chosen
};

/// Continues a prompt, token by token. Returns the new tokens, without the prompt.
///
/// The model sees the last `context` ids of its configuration, so of a longer prompt the end. With a cache,
/// the prompt is one pass and each token another of length 1. Once there are more ids than the context, all
/// positions move by one with each token, and the last ids are computed anew, cache or not: T times the work.
///
/// With and without a cache, one Rng state gives the same tokens (unless a choice is closer than rounding).
/// The model runs outside any graph and any TrainMode scope; `on_token` runs in the caller's, and may throw
/// to end it.
///
/// Throws: ValueError if the prompt is empty or `tokens` negative; IndexError for an id, `stop` included,
/// outside [0, V); as token_probabilities.
FOVEA_API std::vector<std::int64_t> generate(const Gpt& model, std::span<const std::int64_t> prompt,
                                             const GenerateOptions& options, Rng& rng);

/// The same with any model of language, called with the last `context` ids, (1, T). There is no cache,
/// whatever the options say. Throws: also ValueError if context is below 1; ShapeError unless the model's
/// logits are (1, T, V).
FOVEA_API std::vector<std::int64_t> generate(const LanguageModel& model, std::int64_t context,
                                             std::span<const std::int64_t> prompt,
                                             const GenerateOptions& options, Rng& rng);

}  // namespace fovea
