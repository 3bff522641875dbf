#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"

/// Tokenizers turn text into ids and back, by characters, by bytes or by byte pairs (byte_pair_tokenizer.h).
namespace fovea {

/// A list of tokens. A token is a string of bytes, and its id is its position in the list.
///
/// Threads: a tokenizer does not change once it is made; any number of threads may use it.
class FOVEA_API Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// V, the number of tokens: ids are 0 to V - 1.
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The bytes of a token, which may end inside a character. Throws: IndexError if the id is outside [0, V).
  const std::string& token(std::int64_t id) const;
  /// The id of the token with these bytes, if there is one.
  std::optional<std::int64_t> find(std::string_view bytes) const;

  /// The ids of a text. Throws: ValueError if the tokenizer has no token for a part of the text.
  virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;
  /// The bytes of these tokens, joined: decode(encode(text)) == text.
  /// Throws: IndexError, with the position, if an id is outside [0, V).
  std::string decode(std::span<const std::int64_t> ids) const;

  /// Describes the whole tokenizer, for a checkpoint. `tokenizer_from_json` makes an equal one from it.
  virtual std::string to_json() const = 0;

 protected:
  explicit Tokenizer(std::vector<std::string> tokens);
  // Protected, so that a tokenizer can be copied but never sliced to this base class.
  Tokenizer(const Tokenizer&) = default;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;

 private:
  std::vector<std::string> tokens_;
  std::vector<std::uint32_t> order_;  // the ids in the order of their tokens' bytes
};

/// The tokenizer that `to_json` described. Throws: ValueError, which says what is wrong with the description.
FOVEA_API std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);

struct CharacterOptions {
  bool unknown = false;  ///< adds a last token `<unk>`, which stands for every character that has no token
};

/// A token for each Unicode character (code point) that occurs in a text, in the order of code points.
class FOVEA_API CharacterTokenizer final : public Tokenizer {
 public:
  /// Throws: ValueError if the text is empty, or not UTF-8; then it names the first faulty byte and its
  /// position.
  explicit CharacterTokenizer(std::string_view text, const CharacterOptions& options = {});

  /// Throws: ValueError, with the byte position, for a character without a token or a byte that is not UTF-8.
  /// With `<unk>` nothing is thrown: both become that token, which `decode` writes as "<unk>".
  std::vector<std::int64_t> encode(std::string_view text) const override;
  std::string to_json() const override;

 private:
  std::vector<std::int32_t> ids_;  // by code point, up to the largest one known; -1: not known
  std::optional<std::int64_t> unknown_;
};

/// One token for each of the 256 bytes, whose id is its value. Any text can be encoded.
class FOVEA_API ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer();

  std::vector<std::int64_t> encode(std::string_view text) const override;
  std::string to_json() const override;
};

}  // namespace fovea
