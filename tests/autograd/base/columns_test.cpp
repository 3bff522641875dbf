#include "autograd/base/columns.h"

#include <string>

#include "tests/support/catch.h"

using fovea::detail::column_count;
using fovea::detail::fitted;
using fovea::detail::padded;

TEST_CASE("column_count: wide characters take two columns, combining ones none", "[text]") {
  CHECK(column_count("") == 0);
  CHECK(column_count("key") == 3);
  CHECK(column_count("k\u00E9y") == 3);
  CHECK(column_count("ke\u0301y") == 3);           // e and an acute accent after it
  CHECK(column_count("\u6F22\u5B57") == 4);        // 漢字
  CHECK(column_count("\uFF21\uFF22\uFF71") == 5);  // full-width letters, and a half-width one
  CHECK(column_count("\uD55C") == 2);              // one syllable of Korean,
  CHECK(column_count("\u1112\u1161\u11AB") == 2);  // and its three parts
  CHECK(column_count("\U0001F600") == 2);
  CHECK(column_count("\U0001F468\u200D\U0001F469\u200D\U0001F467") == 2);  // a family, joined
  CHECK(column_count("\U0001F1EB\U0001F1F7") == 2);                        // a flag
  CHECK(column_count("\u0E01\u0E34") == 1);                                // Thai, with a vowel above
  CHECK(column_count("\u2591\u2588 \u2192") == 4);
  CHECK(column_count("a\u200Bb") == 2);
  CHECK(column_count("a\xFF\xC3") == 3);
}

TEST_CASE("padded: columns are filled, not bytes", "[text]") {
  CHECK(padded("e\u0301", 3) == "e\u0301  ");
  CHECK(padded("\u6F22", 3) == "\u6F22 ");
  CHECK(padded("word", 4) == "word");
  CHECK(padded("word", 2) == "word");
}

TEST_CASE("fitted: a text is cut between characters, not within one", "[text]") {
  CHECK(fitted("a word", 6) == "a word");
  CHECK(fitted("a word", 5) == "a ...");
  CHECK(fitted("\u6F22\u5B57\u6F22", 6) == "\u6F22\u5B57\u6F22");
  CHECK(fitted("\u6F22\u5B57\u6F22", 5) == "\u6F22...");
  CHECK(fitted("\u6F22\u5B57\u6F22", 4) == "...");
  CHECK(fitted("e\u0301e\u0301e\u0301e\u0301e\u0301", 4) == "e\u0301...");
  CHECK(fitted("word", 0) == "...");
  for (std::size_t columns = 3; columns < 12; ++columns) {
    CHECK(column_count(fitted("\u6F22e\u0301\U0001F468\u200D\U0001F469 b\u5B57c\u00E9", columns)) <= columns);
  }
}
