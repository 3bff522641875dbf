#include "fovea/layers/name_matches.h"

#include <string>

#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("name_matches: stars, question marks and whole names", "[layers]") {
  CHECK(name_matches("*", ""));
  CHECK(name_matches("*", "blocks.0.W"));
  CHECK(name_matches("blocks.0.W", "blocks.0.W"));
  CHECK(name_matches("blocks.*", "blocks.0.W"));
  CHECK(name_matches("*.W", "blocks.0.W"));
  CHECK(name_matches("b*.?.*W", "blocks.0.attention.W"));
  CHECK(name_matches("*a*a*b", "aaaab"));
  CHECK(name_matches("**W**", "W"));
  CHECK_FALSE(name_matches("", "W"));
  CHECK_FALSE(name_matches("blocks", "blocks.0.W"));
  CHECK_FALSE(name_matches("locks.0.W", "blocks.0.W"));
  CHECK_FALSE(name_matches("blocks.?.W", "blocks.10.W"));
  CHECK_FALSE(name_matches("*.b", "blocks.0.W"));
  CHECK_FALSE(name_matches("?", ""));
  // Backtracking over every star would take exponential time here.
  CHECK_FALSE(name_matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(1000, 'a')));
}

}  // namespace
}  // namespace fovea
