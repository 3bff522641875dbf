#pragma once

#include <cstdint>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// How the next token is chosen from a model's logits. The options apply in this order. Each filters the
/// tokens that the one before has left, whose probabilities are scaled to add up to 1. The likeliest token
/// always stays, and of equally likely tokens the one with the lower id comes first.
struct Sampling {
  double temperature = 1;  ///< divides the logits; 0 takes the likeliest token (greedy)
  std::int64_t top_k = 0;  ///< keeps the k likeliest tokens; 0 keeps all
  /// Keeps the fewest likeliest tokens whose probabilities add up to p (nucleus sampling, Holtzman et al.
  /// 2020).
  double top_p = 1;
  /// Keeps the tokens whose probability is at least this fraction of the likeliest one's (Nguyen et al.
  /// 2024).
  double min_p = 0;
};

/// The distribution from which the next token is drawn, by id: softmax(logits / temperature), filtered by the
/// other options.
///
/// Shapes: logits (V,) -> V probabilities. Throws: ShapeError if the logits are not (V,) or V is 0;
/// NonFiniteError if a logit is NaN or +inf, or all are -inf; ValueError unless temperature is finite and at
/// least 0, top_k is at least 0, top_p is in (0, 1] and min_p is in [0, 1].
FOVEA_API std::vector<double> token_probabilities(const Tensor& logits, const Sampling& sampling = {});

/// Draws a token from `token_probabilities`: the first, in the order of ids, at which their sum exceeds a
/// uniform random number. Greedy or not, this takes one number from the Rng. Throws: as
/// `token_probabilities`.
FOVEA_API std::int64_t sample_token(const Tensor& logits, const Sampling& sampling, Rng& rng);

}  // namespace fovea
