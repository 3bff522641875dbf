#include "autograd/base/text.h"

#include <fmt/format.h>

#include "autograd/base/fail.h"
#include "autograd/base/utf8.h"
#include "tests/support/catch.h"

using namespace fovea::detail;

TEST_CASE("with_commas: groups of three digits, with a sign in front", "[text]") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(-100) == "-100");
  CHECK(with_commas(-1234567) == "-1,234,567");
}

TEST_CASE("whole_number: a number and nothing else", "[text]") {
  CHECK(whole_number("-12") == -12);
  CHECK(whole_number("0007") == 7);
  CHECK(whole_number("9223372036854775807") == 9223372036854775807);
  for (const char* text : {"", "-", "+12", " 12", "12 ", "1e3", "1.0", "9223372036854775808"}) {
    CAPTURE(text);
    CHECK_FALSE(whole_number(text).has_value());
  }
}

TEST_CASE("printable: control characters are escaped, and a cut never splits a character", "[text]") {
  CHECK(printable("a\n\tb\x1b[31m\x7f") == "a\\n\\tb\\x1b[31m\\x7f");
  CHECK(printable("kéy") == "kéy");
  CHECK(printable("kéy", 4) == "kéy");
  CHECK(printable("kéy", 3) == "ké...");
  CHECK(printable("kéy", 2) == "k...");
  CHECK(printable("kéy", 0) == "...");
}

TEST_CASE("printable: nothing that a terminal obeys, turns or hides is left", "[text]") {
  CHECK(printable("\x1b]0;title\x07") == "\\x1b]0;title\\x07");
  CHECK(printable("a\r\x08z") == "a\\x0d\\x08z");
  CHECK(printable("\u0080\u009b31m\u009f") == "\\u{80}\\u{9b}31m\\u{9f}");
  CHECK(printable("\u2028\u2029\u0085") == "\\u{2028}\\u{2029}\\u{85}");
  for (const char32_t code : {0x061CU, 0x180EU, 0x200BU, 0x200CU, 0x200DU, 0x200EU, 0x200FU, 0x202AU, 0x202EU,
                              0x2060U, 0x2066U, 0x2069U, 0xFEFFU, 0x00ADU, 0x034FU, 0x3164U, 0xE0041U}) {
    const std::string character = to_utf8(code);
    CHECK(printable("a" + character + "b") == fmt::format("a\\u{{{:x}}}b", static_cast<unsigned>(code)));
  }
}

TEST_CASE("printable: bytes that are not UTF-8 are escaped one by one", "[text]") {
  CHECK(printable("a\xffz\x9b") == "a\\xffz\\x9b");
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");           // the end of the character is missing
  CHECK(printable("\xc0\x8a") == "\\xc0\\x8a");           // an overlong newline
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable(std::string(9, '\x80'), 2) == "\\x80\\x80...");
  CHECK(printable(std::string("\0a", 2)) == "\\x00a");
}

TEST_CASE("fail: an error is one printable line, whatever is in it", "[text]") {
  const std::string name = "w\x1b[2J\nfovea: all is well\u202e";
  CHECK_THROWS_WITH(fovea::fail<fovea::ValueError>("[f] there is no '{}'", name),
                    "[f] there is no 'w\\x1b[2J\\nfovea: all is well\\u{202e}'");
  CHECK_THROWS_WITH(fovea::fail<fovea::ValueError>("{}", std::string(9000, 'x')),
                    std::string(fovea::longest_error, 'x') + "...");
}

TEST_CASE("in_quotes: at most 80 bytes of the text, in quotes", "[text]") {
  CHECK(in_quotes("blocks.0.W") == "'blocks.0.W'");
  CHECK(in_quotes(std::string(80, 'x')) == "'" + std::string(80, 'x') + "'");
  CHECK(in_quotes(std::string(81, 'x')) == "'" + std::string(80, 'x') + "...'");
}
