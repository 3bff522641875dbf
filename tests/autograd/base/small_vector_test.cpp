#include "fovea/autograd/base/small_vector.h"

#include <string>

#include "tests/support/catch.h"

using namespace fovea;

namespace {

// Longer than what a string keeps inside itself, so that a string that was moved from is empty.
const std::string word = "a word of more than a dozen letters";

}  // namespace

TEST_CASE("SmallVector: an element of its own is added when it grows") {
  SmallVector<std::string, 2> words{word, word + "2"};
  words.emplace_back(words[0]);
  CHECK(words == SmallVector<std::string, 2>{word, word + "2", word});
  words.push_back(words[1]);
  words.emplace_back(words[0]);
  words.insert(words.begin(), words[1]);
  CHECK(words.size() == 6);
  CHECK(words.front() == word + "2");
  CHECK(words.back() == word);
}
