#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fovea/autograd/rng.h"
#include "fovea/export.h"
#include "fovea/layers/gpt.h"
#include "fovea/train/task.h"

namespace fovea {

/// How the next token is chosen among a model's logits.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; 0: the likeliest token (greedy)
  std::int64_t top_k = 0;  ///< among the k likeliest only; 0: all
  double top_p = 1;        ///< among the fewest whose probabilities add up to p (Holtzman et al. 2020)
  double min_p = 0;  ///< among those at least this times as likely as the likeliest (Nguyen et al. 2024)
};

struct GenerateOptions {
  std::int64_t tokens = 100;  ///< at most so many
  Sampling sampling = {};
  std::optional<std::int64_t> stop = {};  ///< the token to end with
  bool cache = true;                      ///< keep keys and values instead of computing them again
  std::function<void(std::int64_t id)> on_token = {};  ///< called with each token as it is chosen
};
}  // namespace fovea
