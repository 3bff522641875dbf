#include "autograd/base/text.h"

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

TEST_CASE("in_quotes: at most 80 bytes of the text, in quotes", "[text]") {
  CHECK(in_quotes("blocks.0.W") == "'blocks.0.W'");
  CHECK(in_quotes(std::string(80, 'x')) == "'" + std::string(80, 'x') + "'");
  CHECK(in_quotes(std::string(81, 'x')) == "'" + std::string(80, 'x') + "...'");
}
