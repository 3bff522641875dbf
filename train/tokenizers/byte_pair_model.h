#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fovea/train/tokenizers/byte_pair_tokenizer.h"

// Byte-pair tokens and merges, and the text by which GPT-2's files and our JSON name them: a token's bytes
// are written as letters, one each, so that a name has no space or control character in it.
namespace fovea::detail {

inline std::uint64_t pair_key(std::int64_t left, std::int64_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
}

/// The bytes in the order of their letters, which is the order of their ids in GPT-2: the visible characters
/// of Latin-1, which are their own letters, then the rest, which are U+0100, U+0101 and so on.
const std::array<unsigned char, 256>& bytes_in_order();

/// The letters of some bytes.
std::string letters_of(std::string_view bytes);

/// Reads a vocabulary and its merges, in this order. Errors are ValueErrors that say what was found, and
/// leave it to the caller to say where.
class BytePairReader {
 public:
  /// An object of names and their ids.
  explicit BytePairReader(const nlohmann::json& vocabulary);
  /// The next merge: "left right".
  void add_merge(std::string_view line);

  /// The bytes of all tokens. The name of a token that is no byte and no merge makes is taken literally.
  std::vector<std::string> tokens() const;
  const std::vector<BytePairTokenizer::Merge>& merges() const { return merges_; }

 private:
  std::int64_t id_of(std::string_view name) const;

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int64_t> ids_;
  std::vector<BytePairTokenizer::Merge> merges_;
  std::unordered_map<std::uint64_t, std::size_t> ranks_;
};

/// A vocabulary as JSON that the reader takes, in the order of ids.
std::string vocabulary_of(const BytePairTokenizer& tokenizer);
/// A merge as the reader takes it.
std::string line_of(const BytePairTokenizer& tokenizer, const BytePairTokenizer::Merge& merge);

}  // namespace fovea::detail
