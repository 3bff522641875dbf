#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/train/tokenizers/vocabulary.h"

/// Numbers as the words of a task: the id of a number is the number itself.
namespace fovea::detail {

/// "0" to "count - 1", and after them the signs: the first has id `count`.
Vocabulary number_words(std::int64_t count, const std::vector<std::string>& signs = {});

/// So many draws from {0, ..., below - 1}.
std::vector<std::int64_t> random_numbers(std::int64_t count, std::int64_t below, Rng& rng);

}  // namespace fovea::detail
