#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fovea/autograd/base/export.h"

/// Tokenizers turn text into ids and back: by characters, by bytes, or by byte pairs (byte_pair_tokenizer.h).
namespace fovea {

/// A list of tokens, which are strings of bytes; a token's id is its place in the list.
///
/// Threads: a tokenizer is not changed once it is made; any number of threads may use it.
class FOVEA_API Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// V: ids are 0 to V - 1.
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The bytes of a token, which need not be whole characters. Throws: IndexError for an id outside [0, V).
  const std::string& token(std::int64_t id) const;
  /// The id of the token that has these bytes, or none.
  std::optional<std::int64_t> find(std::string_view bytes) const;

  /// The ids of a text. Throws: ValueError where a text has what the tokenizer can't express.
  virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;
  /// The bytes of all tokens in a row: decode(encode(text)) == text. Throws: IndexError, with the position.
  std::string decode(std::span<const std::int64_t> ids) const;

  /// All there is to know, for a checkpoint: `tokenizer_from_json` makes an equal tokenizer of it.
  virtual std::string to_json() const = 0;

 protected:
  explicit Tokenizer(std::vector<std::string> tokens);
  // Only whole tokenizers are copied, never their common part.
  Tokenizer(const Tokenizer&) = default;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;

 private:
  std::vector<std::string> tokens_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
};

/// The tokenizer that `to_json` described. Throws: ValueError, saying what is wrong with the description.
FOVEA_API std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);

struct CharacterOptions {
  bool unknown = false;  ///< a last token `<unk>` stands for every other character
};

/// One token for each Unicode character (code point) of a text, in the order of their code points.
class FOVEA_API CharacterTokenizer final : public Tokenizer {
 public:
  /// Throws: ValueError if the text is empty, or not UTF-8, with the first byte that is not and its position.
  explicit CharacterTokenizer(std::string_view text, const CharacterOptions& options = {});

  /// Throws: ValueError for a character that is not among the tokens, or a byte that is not UTF-8, with its
  /// byte position; with `<unk>`, they are that token, and `decode` writes "<unk>".
  std::vector<std::int64_t> encode(std::string_view text) const override;
  std::string to_json() const override;

 private:
  std::unordered_map<char32_t, std::int64_t> characters_;
  std::optional<std::int64_t> unknown_;
};

/// 256 tokens: a byte's id is its value. Takes any bytes.
class FOVEA_API ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer();

  std::vector<std::int64_t> encode(std::string_view text) const override;
  std::string to_json() const override;
};

}  // namespace fovea
