#include "fovea/train/tokenizers/vocabulary.h"

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

const Vocabulary& words() {
  static const Vocabulary vocabulary({"the", "key", "cabinets", "is", "."});
  return vocabulary;
}

}  // namespace

TEST_CASE("Vocabulary: a text becomes ids and comes back", "[train]") {
  CHECK(words().size() == 5);
  CHECK(words().encode("the key is.") == Ids{0, 1, 3, 4});
  CHECK(words().encode("  the   key is . ") == Ids{0, 1, 3, 4});
  CHECK(words().encode("").empty());
  CHECK(words().decode(Ids{0, 2, 3, 4}) == "the cabinets is.");
  CHECK(words().find("is") == 3);
  CHECK(words().find("are") == std::nullopt);
}

TEST_CASE("Vocabulary: an unknown word is refused, with its position and a similar known word", "[train]") {
  CHECK_THROWS_AS(words().encode("the cabinet is."), ValueError);
  CHECK_THROWS_WITH(words().encode("the cabinet is."), ContainsSubstring("word 2, \"cabinet\"") &&
                                                           ContainsSubstring("did you mean \"cabinets\"?"));
  CHECK_THROWS_WITH(words().encode("The key"),
                    ContainsSubstring("word 1, \"The\"") && ContainsSubstring("did you mean \"the\"?"));
  CHECK_THROWS_WITH(words().encode("the elephant"),
                    ContainsSubstring("word 2, \"elephant\"") && !ContainsSubstring("did you mean"));
}

TEST_CASE("Vocabulary: ids outside the vocabulary and texts that are no words are refused", "[train]") {
  CHECK_THROWS_AS(words().word(5), IndexError);
  CHECK_THROWS_AS(words().decode(Ids{0, -1}), IndexError);
  CHECK_THROWS_AS(Vocabulary({"a", "b", "a"}), ValueError);
  CHECK_THROWS_AS(Vocabulary({"a", ""}), ValueError);
  CHECK_THROWS_AS(Vocabulary({"a b"}), ValueError);
}
