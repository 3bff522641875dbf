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

/// The largest number of tokens in a vocabulary that is read.
inline constexpr std::size_t largest_vocabulary = std::size_t{1} << 24;

/// A pair of ids as one number, to look it up by.
inline std::uint64_t pair_key(std::int64_t left, std::int64_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
}

/// The bytes in the order of their ids in GPT-2: first the visible characters of Latin-1, each of which is
/// its own letter, then the rest, whose letters are U+0100, U+0101 and so on.
const std::array<unsigned char, 256>& bytes_in_order();

/// The name of a token with these bytes.
std::string letters_of(std::string_view bytes);

/// Reads all names of a vocabulary and then its merges. Errors are ValueErrors that say what was found; the
/// caller adds in which file.
class BytePairReader {
 public:
  /// Reads a name and its id.
  void add_name(std::string name, const nlohmann::json& id);
  /// Ends the names, which must have the ids from 0 on.
  void end_names();
  /// Reads the next merge: "left right".
  void add_merge(std::string_view line);

  /// Hands over the bytes of all tokens. The name of a token that is neither a byte nor made by a merge is
  /// taken literally.
  std::vector<std::string> take_tokens();
  /// Hands over the merges.
  std::vector<BytePairTokenizer::Merge> take_merges();

 private:
  void sort_by_ids();
  std::int64_t id_of(std::string_view name) const;

  std::vector<std::string> names_;
  std::vector<std::uint32_t> ids_;  // of the names, until they are sorted by them
  std::vector<std::uint32_t> order_;
  std::vector<BytePairTokenizer::Merge> merges_;
  std::unordered_map<std::uint64_t, std::size_t, PairHash> ranks_;
};

/// A tokenizer's vocabulary as JSON, in the order of ids, as the reader takes it.
std::string vocabulary_of(const BytePairTokenizer& tokenizer);
/// A merge as a line, as the reader takes it.
std::string line_of(const BytePairTokenizer& tokenizer, const BytePairTokenizer::Merge& merge);

}  // namespace fovea::detail
