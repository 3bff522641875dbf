#include "fovea/train/tokenizers/clean_text.h"

#include <string>

#include "fovea/autograd/base/error.h"
#include "fovea/train/tokenizers/tokenizer.h"
#include "tests/support/catch.h"

using namespace fovea;
using namespace std::string_view_literals;

TEST_CASE("clean_text: one text is the same whichever system saved it", "[train]") {
  constexpr std::string_view same = "anna\n\nb\xC3\xB6\nc";
  CHECK(clean_text(same) == same);
  CHECK(clean_text("anna\r\n\r\nb\xC3\xB6\r\nc") == same);
  CHECK(clean_text("anna\r\rb\xC3\xB6\rc") == same);
  CHECK(clean_text("\xEF\xBB\xBF"
                   "anna\n\r\nb\xC3\xB6\rc") == same);
  CHECK(clean_text(clean_text("a\r\r\nb\n\rc")) == "a\n\nb\n\nc");
  CHECK(clean_text("") == "");
  CHECK(clean_text("\xEF\xBB\xBF") == "");
  CHECK(clean_text("\r") == "\n");
  // Only the mark at the beginning says how the file is encoded.
  CHECK(clean_text("a\xEF\xBB\xBF") == "a\xEF\xBB\xBF");
  // A byte-level tokenizer takes what is not UTF-8.
  CHECK(clean_text("a\xFF\xC3\r\n") == "a\xFF\xC3\n");
  CHECK(CharacterTokenizer(clean_text("\xEF\xBB\xBF"
                                      "ab\r\n"))
            .size() == 3);
}

TEST_CASE("clean_text: other encodings and binary files are refused", "[train]") {
  CHECK_THROWS_WITH(clean_text("\xFF\xFE"
                               "a\0\n\0"sv),
                    ContainsSubstring("UTF-16: convert it to UTF-8"));
  CHECK_THROWS_WITH(clean_text("\xFE\xFF\0a\0\n"sv), ContainsSubstring("UTF-16: convert it to UTF-8"));
  CHECK_THROWS_WITH(clean_text("\xFF\xFE\0\0a\0\0\0"sv), ContainsSubstring("UTF-32: convert it to UTF-8"));
  CHECK_THROWS_WITH(clean_text("\0\0\xFE\xFF\0\0\0a"sv), ContainsSubstring("UTF-32: convert it to UTF-8"));
  CHECK_THROWS_WITH(clean_text("a\0b\0"sv), ContainsSubstring("byte 1 is zero"));
  CHECK_THROWS_AS(clean_text("abc\0"sv), ValueError);
}
