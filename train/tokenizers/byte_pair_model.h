#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fovea/train/tokenizers/byte_pair_tokenizer.h"

/// Byte-pair tokens and merges, and their names in GPT-2's files and in our JSON. A name has one letter for
/// each byte of the token, chosen so that it contains no space or control character.
namespace fovea::detail {

/// A pair of ids as one number, to look it up by.
inline std::uint64_t pair_key(std::int64_t left, std::int64_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
}

/// The bytes in the order of their ids in GPT-2: first the visible characters of Latin-1, each of which is
/// its own letter, then the rest, whose letters are U+0100, U+0101 and so on.
const std::array<unsigned char, 256>& bytes_in_order();

/// The name of a token with these bytes.
std::string letters_of(std::string_view bytes);

/// Reads a vocabulary and then its merges. Errors are ValueErrors that say what was found; the caller adds in
/// which file.
class BytePairReader {
 public:
  /// Reads an object of names and their ids.
  explicit BytePairReader(const nlohmann::json& vocabulary);
  /// Reads the next merge: "left right".
  void add_merge(std::string_view line);

  /// The bytes of all tokens. The name of a token that is neither a byte nor made by a merge is taken
  /// literally.
  std::vector<std::string> tokens() const;
  const std::vector<BytePairTokenizer::Merge>& merges() const { return merges_; }

 private:
  std::int64_t id_of(std::string_view name) const;

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int64_t> ids_;
  std::vector<BytePairTokenizer::Merge> merges_;
  std::unordered_map<std::uint64_t, std::size_t> ranks_;
};

/// A tokenizer's vocabulary as JSON, in the order of ids, as the reader takes it.
std::string vocabulary_of(const BytePairTokenizer& tokenizer);
/// A merge as a line, as the reader takes it.
std::string line_of(const BytePairTokenizer& tokenizer, const BytePairTokenizer::Merge& merge);

}  // namespace fovea::detail
