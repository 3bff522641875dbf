#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// The words of a task. A word's id is its position in the list.
///
/// In a text, words are separated by spaces. A full stop at the end of a word is a word of its own and is
/// written without a space before it, so that decode(encode(text)) == text.
class FOVEA_API Vocabulary {
 public:
  /// Throws: ValueError if a word is empty, has a space in it or is given twice.
  explicit Vocabulary(std::vector<std::string> words);

  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }

  /// The word with this id. Throws: IndexError if the id is outside [0, V).
  const std::string& word(std::int64_t id) const;
  /// The id of a word, if it is in the vocabulary.
  std::optional<std::int64_t> find(std::string_view word) const;

  /// The ids of a text. Throws: ValueError for an unknown word, with its position and the most similar known
  /// word.
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// The text of these ids. Throws: IndexError if an id is outside [0, V).
  std::string decode(std::span<const std::int64_t> ids) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

}  // namespace fovea
