#include "train/tasks/base/number_words.h"

#include <algorithm>

namespace fovea::detail {

Vocabulary number_words(std::int64_t count, const std::vector<std::string>& signs) {
  std::vector<std::string> words;
  for (std::int64_t i = 0; i < count; ++i) words.push_back(std::to_string(i));
  words.insert(words.end(), signs.begin(), signs.end());
  return Vocabulary(std::move(words));
}

std::vector<std::int64_t> random_numbers(std::int64_t count, std::int64_t below, Rng& rng) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  for (std::int64_t& number : numbers) number = rng.uniform_int(below);
  return numbers;
}

std::vector<std::int64_t> different_numbers(std::int64_t count, std::int64_t below, Rng& rng) {
  std::vector<std::int64_t> drawn;
  while (std::ssize(drawn) < count) {
    const std::int64_t one = rng.uniform_int(below);
    if (std::ranges::find(drawn, one) == drawn.end()) drawn.push_back(one);
  }
  return drawn;
}

}  // namespace fovea::detail
