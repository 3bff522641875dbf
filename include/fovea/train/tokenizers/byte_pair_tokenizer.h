#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/train/tokenizers/tokenizer.h"

namespace fovea {

namespace detail {
/// Spreads pairs of ids over a hash table in a way that differs from process to process, so that no file can
/// hold pairs that all meet in one place.
struct FOVEA_API PairHash {
  std::size_t operator()(std::uint64_t pair) const;
};
}  // namespace detail

struct BytePairTraining {
  std::int64_t merges = 512;   ///< the largest number of merges; V is at most 256 + merges
  std::int64_t min_count = 2;  ///< pairs that occur less often in the text are not merged
};

/// Byte-pair encoding as in GPT-2 (Sennrich et al. 2016; Radford et al. 2019).
///
/// A text is first split into words: runs of letters, of numbers or of other signs, each with one space
/// before it if there is one; white space; and the English endings 's 't 're 've 'm 'll 'd. Letters and
/// numbers are those of all scripts (\p{L}, \p{N}). Bytes that are not UTF-8 separate words, and a run of
/// them is a word of its own. Within a word, each byte is a token at first. Then neighbouring tokens are
/// merged as long as a learned merge applies: always the merge that was learned first, and of several places
/// the leftmost. So any bytes can be encoded, and decode(encode(text)) == text.
///
/// Encoding never yields a token that is neither a byte nor made by a merge, such as GPT-2's "<|endoftext|>".
/// Add its id, find("<|endoftext|>"), where you want it.
class FOVEA_API BytePairTokenizer final : public Tokenizer {
 public:
  /// Two neighbouring tokens and the token that replaces them.
  struct Merge {
    std::int64_t left;
    std::int64_t right;
    std::int64_t token;
  };

  /// Learns merges from a text. Each step merges the pair that is most frequent within its words; of equally
  /// frequent pairs the one with the lowest left id, then the lowest right id. The PyPI package `tokenizers`
  /// has the same rules. The first tokens are the bytes, in GPT-2's order. Then each merge adds a token,
  /// unless there is one with the same bytes already.
  ///
  /// Throws: ValueError if merges < 0 or min_count < 1.
  static BytePairTokenizer train(std::string_view text, const BytePairTraining& options = {});

  /// Reads GPT-2's two files: the tokens with their ids as JSON, and the merges, one per line.
  ///
  /// Throws: FileError if a file can't be read or is malformed. It names the line, what was found and what
  /// was expected.
  static BytePairTokenizer load(const std::filesystem::path& vocab_json,
                                const std::filesystem::path& merges_txt);
  /// Writes the same two files. Throws: FileError if they can't be written.
  void save(const std::filesystem::path& vocab_json, const std::filesystem::path& merges_txt) const;

  /// The merges, in the order in which they were learned and are applied.
  const std::vector<Merge>& merges() const { return merges_; }

  /// Encodes any bytes; no text is refused.
  std::vector<std::int64_t> encode(std::string_view text) const override;
  std::string to_json() const override;

 private:
  friend std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);

  // Every byte must be a token, and the ids of every merge must be those of tokens.
  BytePairTokenizer(std::vector<std::string> tokens, std::vector<Merge> merges);

  std::vector<Merge> merges_;
  std::unordered_map<std::uint64_t, std::size_t, detail::PairHash> ranks_;  // positions in merges_, by pair
  std::array<std::int64_t, 256> bytes_{};                                   // the token of each byte
};

}  // namespace fovea
