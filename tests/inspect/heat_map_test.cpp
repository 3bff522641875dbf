#include "fovea/inspect/heat_map.h"

#include <limits>
#include <string>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Words = std::vector<std::string>;

const Words key{"the", "key", "to", "cabinets"};

}  // namespace

TEST_CASE("heat_map: without colours, shades and percent stand under the words", "[inspect]") {
  CHECK(heat_map(key, tensor({0.004, 0.76, 0.06, 0.176})) ==
        " the   key   to   cabinets\n"
        "      █████ ░░░░ ░░░░░░░░░░\n"
        " 0%    76%   6%     18%\n");
}

TEST_CASE("heat_map: shades change at 1, 25, 50 and 75 percent", "[inspect]") {
  const auto shade_of = [](double weight) {
    const std::string text = heat_map(Words{"word"}, tensor({weight}, f64));
    const std::string line = text.substr(text.find('\n') + 1);
    return line.substr(0, std::min(line.find('\n'), std::string("█").size()));
  };
  CHECK(shade_of(0).empty());
  CHECK(shade_of(0.0099).empty());
  CHECK(shade_of(0.01) == "░");
  CHECK(shade_of(0.25) == "░");
  CHECK(shade_of(0.26) == "▒");
  CHECK(shade_of(0.5) == "▒");
  CHECK(shade_of(0.51) == "▓");
  CHECK(shade_of(0.76) == "█");
  CHECK(shade_of(1) == "█");
}

TEST_CASE("heat_map: with colours, each word has a background and none stays on", "[inspect]") {
  const std::string rgb = heat_map(Words{"a", "key"}, tensor({0, 1}), {.colours = Colours::rgb});
  CHECK(rgb ==
        "\x1b[38;5;231;48;2;28;28;36m a  \x1b[0m \x1b[38;5;16;48;2;255;215;95m key  \x1b[0m\n"
        " 0%   100%\n");
}

TEST_CASE("heat_map: a sentence wider than the terminal goes on below", "[inspect]") {
  const Tensor weights = tensor({0.1, 0.2, 0.3, 0.4});
  CHECK(heat_map(key, weights, {.width = 12}) ==
        " the   key\n"
        "░░░░░ ░░░░░\n"
        " 10%   20%\n"
        " to\n"
        "▒▒▒▒▒\n"
        " 30%\n"
        " cabinets\n"
        "▒▒▒▒▒▒▒▒▒▒\n"
        "   40%\n");
  CHECK(heat_map(key, weights, {.width = 0}) == heat_map(key, weights, {.width = 1}));
}

TEST_CASE("heat_map: a whole map has a line for each query and a cell for each key", "[inspect]") {
  CHECK(heat_map(Words{"the", "key"}, Words{"<start>", "the", "key"}, tensor({{1, 0, 0}, {0.4, 0.6, 0}})) ==
        "         0  1  2\n"
        " 0 the ███\n"
        " 1 key ▒▒▒▓▓▓\n");
}

TEST_CASE("heat_map: control characters of a word never reach the terminal", "[inspect]") {
  const std::string text = heat_map(Words{"a\x1b[2J", "\n"}, tensor({0.5, 0.5}));
  CHECK_THAT(text, !ContainsSubstring("\x1b"));
  CHECK_THAT(text, ContainsSubstring("a\\x1b[2J") && ContainsSubstring("\\n"));
}

TEST_CASE("heat_map: a character of several bytes takes one column", "[inspect]") {
  CHECK(heat_map(Words{"schlüssel"}, tensor({1})) ==
        " schlüssel\n"
        "███████████\n"
        "   100%\n");
}

TEST_CASE("heat_map: without words there are no lines", "[inspect]") {
  CHECK(heat_map(Words{}, zeros({0})).empty());
}

TEST_CASE("heat_map: weights of another shape or outside [0, 1] are refused", "[inspect]") {
  CHECK_THROWS_AS(heat_map(key, tensor({0.5, 0.5})), ShapeError);
  CHECK_THROWS_AS(heat_map(Words{"a", "b", "c"}, Words{"d", "e"}, zeros({2, 3})), ShapeError);
  const double bad = GENERATE(1.1, -0.1, std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_WITH(heat_map(Words{"a", "b"}, tensor({0, bad})), ContainsSubstring("weight 1"));
  CHECK(heat_map(Words{"a"}, tensor({1.000001})) == heat_map(Words{"a"}, tensor({1})));
}

TEST_CASE("heat_map: wide and combining characters keep words, shades and percent in line", "[inspect]") {
  CHECK(heat_map(Words{"\u6F22\u5B57", "ke\u0301y", "to"}, tensor({0.004, 0.76, 0.06})) ==
        " \u6F22\u5B57   ke\u0301y   to\n"
        "       █████ ░░░░\n"
        "  0%    76%   6%\n");
  CHECK(heat_map(Words{"\u6F22", "e\u0301", "key"}, Words{"a"}, full({3, 1}, 0.3)) ==
        "         0\n"
        " 0 \u6F22  ▒▒▒\n"
        " 1 e\u0301   ▒▒▒\n"
        " 2 key ▒▒▒\n");
}
