#include <nlohmann/json.hpp>

#include "autograd/base/fail.h"
#include "autograd/base/text.h"
#include "autograd/base/utf8.h"
#include "fovea/train/tokenizers/tokenizer.h"

namespace fovea {
namespace {

using detail::Character;

constexpr char32_t last_code_point = 0x10FFFF;

[[noreturn]] void refuse_byte(const char* name, std::string_view text, std::size_t position) {
  fail<ValueError>(
      "[{}] byte 0x{:02X} at position {} is not UTF-8: use a tokenizer of bytes or byte pairs, which take "
      "any "
      "bytes",
      name, static_cast<unsigned char>(text[position]), position);
}

// A character's code, and the character itself if it can be printed.
std::string describe(char32_t code) {
  const std::string character = detail::to_utf8(code);
  const std::string number = fmt::format("U+{:04X}", static_cast<std::uint32_t>(code));
  return detail::printable(character) == character ? fmt::format("'{}' ({})", character, number) : number;
}

std::vector<std::string> tokens_of(std::string_view text, const CharacterOptions& options) {
  if (text.empty())
    fail<ValueError>("[CharacterTokenizer] the text is empty: give one with the characters to encode");
  std::vector<bool> occurs(last_code_point + 1);
  for (std::size_t at = 0; at < text.size();) {
    const Character next = detail::first_character(text.substr(at));
    if (next.length == 0) refuse_byte("CharacterTokenizer", text, at);
    occurs[next.code] = true;
    at += next.length;
  }
  std::vector<std::string> tokens;
  for (char32_t code = 0; code <= last_code_point; ++code) {
    if (occurs[code]) tokens.push_back(detail::to_utf8(code));
  }
  if (options.unknown) tokens.emplace_back("<unk>");
  return tokens;
}

}  // namespace

CharacterTokenizer::CharacterTokenizer(std::string_view text, const CharacterOptions& options)
    : Tokenizer(tokens_of(text, options)) {
  const std::int64_t characters = size() - (options.unknown ? 1 : 0);
  for (std::int64_t id = 0; id < characters; ++id) {
    const char32_t code = detail::first_character(token(id)).code;
    ids_.resize(code + 1, -1);
    ids_[code] = static_cast<std::int32_t>(id);
  }
  if (options.unknown) unknown_ = characters;
}

std::vector<std::int64_t> CharacterTokenizer::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character next = detail::first_character(text.substr(at));
    const std::int64_t known = next.length > 0 && next.code < ids_.size() ? ids_[next.code] : -1;
    if (known >= 0) {
      ids.push_back(known);
    } else if (unknown_) {
      ids.push_back(*unknown_);
    } else if (next.length == 0) {
      refuse_byte("CharacterTokenizer::encode", text, at);
    } else {
      fail<ValueError>(
          "[CharacterTokenizer::encode] {} at byte {} is not among the {} characters known: leave it "
          "out, or make the tokenizer from a text that has it, or with a token for unknown characters",
          describe(next.code), at, size());
    }
    at += next.length > 0 ? next.length : 1;
  }
  return ids;
}

std::string CharacterTokenizer::to_json() const {
  std::string characters;
  for (std::int64_t id = 0; id < size(); ++id) {
    if (id != unknown_) characters += token(id);
  }
  return nlohmann::ordered_json{
      {"type", "character"}, {"characters", characters}, {"unknown", unknown_.has_value()}}
      .dump();
}

}  // namespace fovea
