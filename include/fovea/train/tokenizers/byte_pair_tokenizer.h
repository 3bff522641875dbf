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

struct BytePairTraining {
  std::int64_t merges = 512;   ///< at most: V = 256 + merges
  std::int64_t min_count = 2;  ///< pairs that a text has fewer times are not merged
};

/// Byte-pair encoding as GPT-2 has it (Sennrich et al. 2016; Radford et al. 2019).
///
/// A text is split into words, none of which spans two of these: letters, numbers, other signs (each with a
/// space before it, if there is one), white space, and the English endings 's 't 're 've 'm 'll 'd. Letters
/// and numbers are those of all scripts (\p{L}, \p{N}). Bytes that are not UTF-8 separate words, and a run of
/// them is a word of its own. The bytes of a word are tokens, and neighbours are joined as long as a merge
/// joins any: the merge that was learned first, leftmost first. So any bytes can be encoded, and
/// decode(encode(text)) == text.
///
/// Texts don't reach a token that is no byte and that no merge makes, such as GPT-2's "<|endoftext|>": put
/// its id, find("<|endoftext|>"), among the others.
class FOVEA_API BytePairTokenizer final : public Tokenizer {
 public:
  /// Two neighbours and the token that they become.
  struct Merge {
    std::int64_t left;
    std::int64_t right;
    std::int64_t token;
  };

  /// Learns merges from a text: each time of the pair that its words have most often, and of equally frequent
  /// pairs the one with the lowest left id, then the lowest right id. The PyPI package `tokenizers` has the
  /// same rules. Bytes come first, in GPT-2's order; then a token for each merge, except where its bytes are
  /// a token already.
  ///
  /// Throws: ValueError if merges < 0 or min_count < 1.
  static BytePairTokenizer train(std::string_view text, const BytePairTraining& options = {});

  /// Reads GPT-2's two files: tokens with their ids as JSON, and merges, one a line.
  ///
  /// Throws: FileError if a file can't be read or is malformed: it names the line, what is there and what
  /// should be.
  static BytePairTokenizer load(const std::filesystem::path& vocab_json,
                                const std::filesystem::path& merges_txt);
  /// Writes the same two files. Throws: FileError.
  void save(const std::filesystem::path& vocab_json, const std::filesystem::path& merges_txt) const;

  /// In the order in which they are applied.
  const std::vector<Merge>& merges() const { return merges_; }

  /// Never throws for its text.
  std::vector<std::int64_t> encode(std::string_view text) const override;
  std::string to_json() const override;

 private:
  friend std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);

  // Every byte must be a token, and every merge join two of them to a third.
  BytePairTokenizer(std::vector<std::string> tokens, std::vector<Merge> merges);

  std::vector<Merge> merges_;
  std::unordered_map<std::uint64_t, std::size_t> ranks_;  // by pair_key: the place among the merges
  std::array<std::int64_t, 256> bytes_{};                 // the token of each byte
};

}  // namespace fovea
