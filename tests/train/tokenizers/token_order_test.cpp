#include "train/tokenizers/token_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace fovea::detail;

TEST_CASE("find_token: every token is found, and of equal ones the first", "[train]") {
  const std::vector<std::string> tokens{"b", "\xff", "", "ab", "b", std::string("b\0", 2), "a"};
  const std::vector<std::uint32_t> order = order_of(tokens);
  for (const std::string& token : tokens) {
    const auto first = static_cast<std::int64_t>(std::ranges::find(tokens, token) - tokens.begin());
    CHECK(find_token(tokens, order, token) == first);
  }
  for (const char* absent : {"c", "aa", "abc", "\xff\xff", "0"})
    CHECK_FALSE(find_token(tokens, order, absent));
  CHECK_FALSE(find_token({}, {}, "a"));
}
