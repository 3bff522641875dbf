#include "fovea/autograd/tensor/mask.h"

#include <string>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

// One line per query of the first batch and head: "110 111".
std::string seen(const Bool& mask) {
  const std::int64_t queries = mask.size(2), keys = mask.size(3);
  std::string text;
  for (std::int64_t i = 0; i < queries; ++i) {
    if (i > 0) text += ' ';
    for (std::int64_t j = 0; j < keys; ++j) text += mask[i * keys + j] ? '1' : '0';
  }
  return text;
}
std::string seen(const Mask& mask, std::int64_t queries, std::int64_t keys) {
  return seen(mask.materialize(1, 1, queries, keys));
}

}  // namespace

TEST_CASE("a causal mask is aligned at the lower right") {
  CHECK(seen(Mask::causal(), 2, 5) == "11110 11111");
  CHECK(seen(Mask::causal(), 3, 3) == "100 110 111");
  CHECK(seen(Mask::causal(), 1, 4) == "1111");
  // With more queries than keys, the first see nothing.
  CHECK(seen(Mask::causal(), 4, 2) == "00 00 10 11");
}

TEST_CASE("a window shows n keys to each side") {
  CHECK(seen(Mask::window(1), 3, 3) == "100 010 001");
  CHECK(seen(Mask::window(2), 4, 4) == "1100 1110 0111 0011");
  CHECK(seen(Mask::window(2), 2, 5) == "00111 00011");
  CHECK(seen(Mask::window(2) & Mask::causal(), 4, 4) == "1000 1100 0110 0011");
  CHECK(seen(Mask::window(2) & Mask::window(1), 2, 2) == "10 01");
  CHECK_THROWS_AS(Mask::window(0), ValueError);
  CHECK_THROWS_WITH(Mask::window(0), ContainsSubstring("[mask]") && ContainsSubstring("at least 1"));
}

TEST_CASE("lengths hide each sequence's padding") {
  const Bool mask = Mask::lengths({2, 0, 7}).materialize(3, 4, 1, 5);
  CHECK(mask.shape() == Shape{3, 1, 1, 5});
  CHECK(std::vector<int>(mask.values().begin(), mask.values().end()) ==
        std::vector<int>{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
  const Bool both = (Mask::lengths({2, 3}) & Mask::lengths({3, 1})).materialize(2, 1, 1, 3);
  CHECK(std::vector<int>(both.values().begin(), both.values().end()) == std::vector<int>{1, 1, 0, 1, 0, 0});
  CHECK(seen(Mask::lengths({2}) & Mask::causal(), 3, 3) == "100 110 110");
  CHECK_THROWS_AS(Mask::lengths({1, -1}), ValueError);
  CHECK_THROWS_WITH(Mask::lengths({1, -1}), ContainsSubstring("sequence 1") && ContainsSubstring("-1"));
  CHECK_THROWS_AS(Mask::lengths(Indices{{1, 2}}), ShapeError);
  CHECK_THROWS_AS(Mask::lengths({1, 2}).materialize(3, 1, 1, 5), ShapeError);
  CHECK_THROWS_WITH(Mask::lengths({1, 2}).materialize(3, 1, 1, 5),
                    ContainsSubstring("2 sequences") && ContainsSubstring("3"));
  CHECK_THROWS_AS(Mask::lengths({1, 2}) & Mask::lengths({1}), ShapeError);
}

TEST_CASE("keep and drop are each other's opposite, and broadcast from the right") {
  const Bool table{{true, false, true}, {false, true, true}};
  CHECK(seen(Mask::keep(table), 2, 3) == "101 011");
  CHECK(seen(Mask::drop(table), 2, 3) == "010 100");
  CHECK(seen(Mask::keep(table) & Mask::drop(Bool{true, false, false}), 2, 3) == "001 011");
  const Bool per_head =
      Mask::keep(Bool({2, 1, 3}, std::vector<std::uint8_t>{1, 0, 0, 0, 0, 1})).materialize(5, 2, 7, 3);
  CHECK(per_head.shape() == Shape{1, 2, 1, 3});
  CHECK_THROWS_AS(Mask::keep(table).materialize(1, 1, 2, 5), ShapeError);
  CHECK_THROWS_AS(Mask::keep(table).materialize(1, 1, 1, 3), ShapeError);
  CHECK_THROWS_WITH(Mask::keep(table).materialize(1, 1, 2, 5),
                    ContainsSubstring("(2, 3)") && ContainsSubstring("(1, 1, 2, 5)"));
  CHECK_THROWS_AS(Mask::keep(Bool({1, 1, 1, 1, 1}, std::vector<std::uint8_t>{1})), ShapeError);
}

TEST_CASE("a mask knows whether it hides nothing") {
  CHECK(Mask().keeps_everything());
  CHECK_FALSE(Mask::causal().keeps_everything());
  CHECK_FALSE(Mask::keep(Bool{true}).keeps_everything());
  CHECK((Mask() & Mask()).keeps_everything());
  CHECK(Mask().materialize(2, 3, 5, 7).shape() == Shape{1, 1, 1, 1});
  CHECK(seen(Mask() & Mask::causal(), 2, 2) == "10 11");
}
