#include "fovea/train/tokenizers/vocabulary.h"

#include <algorithm>
#include <numeric>

#include "autograd/base/fail.h"

namespace fovea {
namespace {

constexpr std::string_view stop = ".";

// The Levenshtein distance: the least number of letters to insert, delete or replace. Only one row of the
// dynamic programming table is kept.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// Suggests the known word with the smallest distance, if that is small for the length of the unknown word.
std::string suggestion(std::string_view unknown, const std::vector<std::string>& words) {
  const std::string* nearest = nullptr;
  std::size_t fewest = std::max<std::size_t>(1, unknown.size() / 3) + 1;
  for (const std::string& word : words) {
    const std::size_t distance = edit_distance(unknown, word);
    if (distance < fewest) {
      fewest = distance;
      nearest = &word;
    }
  }
  return nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : "";
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    const bool stopped = word.size() > 1 && word.ends_with(stop);
    if (stopped) word.remove_suffix(1);
    if (!word.empty()) words.push_back(word);
    if (stopped) words.push_back(stop);
    begin = end + 1;
  }
  return words;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_) {
    if (word.empty() || word.find(' ') != std::string::npos) {
      fail<ValueError>("[Vocabulary] \"{}\" is not a word: a word has at least 1 letter and no spaces", word);
    }
    if (!ids_.emplace(word, static_cast<std::int64_t>(ids_.size())).second) {
      fail<ValueError>("[Vocabulary] \"{}\" is given twice: each word has one id", word);
    }
  }
}

const std::string& Vocabulary::word(std::int64_t id) const {
  if (id < 0 || id >= size()) {
    fail<IndexError>("[Vocabulary::word] id {} is outside the vocabulary of {}", id, size());
  }
  return words_[static_cast<std::size_t>(id)];
}

std::optional<std::int64_t> Vocabulary::find(std::string_view word) const {
  const auto found = ids_.find(word);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::int64_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  for (const std::string_view word : split_words(text)) {
    const std::optional<std::int64_t> id = find(word);
    if (!id) {
      fail<ValueError>("[Vocabulary::encode] word {}, \"{}\", is not among the {} words known{}",
                       ids.size() + 1, word, size(), suggestion(word, words_));
    }
    ids.push_back(*id);
  }
  return ids;
}

std::string Vocabulary::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (const std::int64_t id : ids) {
    if (!text.empty() && word(id) != stop) text += ' ';
    text += word(id);
  }
  return text;
}

}  // namespace fovea
