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

/// The words of a task, each with its id: its place in the list.
///
/// In text, words are separated by spaces; a full stop at the end of a word is a word of its own, so that
/// `decode(encode(text))` gives the text back.
class FOVEA_API Vocabulary {
 public:
  /// Throws: ValueError if a word is empty, has a space in it or stands there twice.
  explicit Vocabulary(std::vector<std::string> words);

  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }

  /// Throws: IndexError for an id outside [0, V).
  const std::string& word(std::int64_t id) const;
  std::optional<std::int64_t> find(std::string_view word) const;

  /// The ids of a text. Throws: ValueError for an unknown word, with its position and the nearest known one.
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// The text of ids. Throws: IndexError.
  std::string decode(std::span<const std::int64_t> ids) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

}  // namespace fovea
