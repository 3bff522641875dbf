#include "cli/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace fovea::cli {
namespace {

// The least number of letters to insert, remove or replace, and of neighbours to swap, that makes one word of
// the other (the optimal string alignment distance). Only the last three rows of its table are kept.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last.back();
}

// Dashes before a name are often forgotten or too few, so they are not compared.
std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  word = without_dashes(word);
  // A third of the letters may be wrong. The beginning of a name counts as one mistake.
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& name : names) {
    const std::string_view bare = without_dashes(name);
    const bool begins = word.size() > 2 && bare.size() > word.size() && bare.starts_with(word);
    const std::size_t mistakes = begins ? 1 : distance(word, bare);
    if (mistakes < least) {
      least = mistakes;
      nearest = &name;
    }
  }
  return nearest ? fmt::format("; did you mean {}?", *nearest) : "";
}

}  // namespace fovea::cli
