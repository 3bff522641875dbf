#include "train/tokenizers/split_words.h"

#include <memory>
#include <string>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "autograd/base/fail.h"
#include "autograd/base/utf8.h"

namespace fovea::detail {
namespace {

// The pattern of GPT-2's encoder.py. White space is spelled out as Unicode's property White_Space, because
// PCRE2's \s has U+180E too.
#define SPACES R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"
constexpr std::string_view pattern =
    "'s|'t|'re|'ve|'m|'ll|'d"
    R"(| ?\p{L}+| ?\p{N}+)"
    "| ?[^" SPACES R"(\p{L}\p{N}]+)"
    "|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";
#undef SPACES

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
using Code = std::unique_ptr<pcre2_code, Free>;
using MatchData = std::unique_ptr<pcre2_match_data, Free>;

[[noreturn]] void give_up(int error) {
  std::string text(256, '\0');
  const int length = pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  fail<Error>("[BytePairTokenizer] PCRE2 can't split the text: {}", text);
}

Code compile() {
  int error = 0;
  PCRE2_SIZE position = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_ANCHORED, &error, &position, nullptr));
  if (!code) give_up(error);
  // If the system forbids to generate machine code, PCRE2 interprets the pattern.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

void split_characters(std::string_view text, const MatchData& data,
                      const std::function<void(std::string_view)>& word) {
  static const Code code = compile();  // matching only reads it, so threads can share it
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  for (std::size_t begin = 0; begin < text.size();) {
    const int found =
        pcre2_match(code.get(), subject, text.size(), begin, PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (found < 0) give_up(found);
    const std::size_t end = pcre2_get_ovector_pointer(data.get())[1];
    word(text.substr(begin, end - begin));
    begin = end;
  }
}

// The number of bytes at the beginning of a text that are UTF-8 characters, or that are not.
std::size_t run_length(std::string_view text, bool characters) {
  std::size_t length = 0;
  while (length < text.size()) {
    const Character next = first_character(text.substr(length));
    if ((next.length > 0) != characters) break;
    length += characters ? next.length : 1;
  }
  return length;
}

}  // namespace

void split_words(std::string_view text, const std::function<void(std::string_view)>& word) {
  const MatchData data(pcre2_match_data_create(1, nullptr));
  if (!data) throw std::bad_alloc();
  while (!text.empty()) {
    const std::size_t valid = run_length(text, true);
    split_characters(text.substr(0, valid), data, word);
    text.remove_prefix(valid);
    const std::size_t invalid = run_length(text, false);
    if (invalid > 0) word(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
}

}  // namespace fovea::detail
