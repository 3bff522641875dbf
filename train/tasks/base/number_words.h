#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/train/tokenizers/vocabulary.h"

/// Numbers as the words of a task. The id of a number is the number itself.
namespace fovea::detail {

/// The words "0" to "count - 1", and then the signs, the first of which has id `count`.
Vocabulary number_words(std::int64_t count, const std::vector<std::string>& signs = {});

/// Draws `count` numbers from {0, ..., below - 1}, independently and uniformly.
std::vector<std::int64_t> random_numbers(std::int64_t count, std::int64_t below, Rng& rng);

/// Draws `count` different numbers from {0, ..., below - 1}, in random order.
std::vector<std::int64_t> different_numbers(std::int64_t count, std::int64_t below, Rng& rng);

}  // namespace fovea::detail
