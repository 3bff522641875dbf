#include "fovea/train/data/hold_out.h"

#include <limits>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("is_held_out: the asked share of sequences is held out, whichever id varies", "[train][task]") {
  const double share = GENERATE(0.125, 0.5, 0.9);
  constexpr int count = 8009;
  for (const std::size_t place : {std::size_t{0}, std::size_t{3}, std::size_t{6}}) {
    Ids ids(7, 5);
    int held_out = 0;
    for (int i = 0; i < count; ++i) {
      ids[place] = i;
      held_out += is_held_out(ids, share) ? 1 : 0;
    }
    // Four standard deviations.
    CHECK(static_cast<double>(held_out) / count == Approx(share).margin(4 * 0.5 / 89.5));
  }
}

TEST_CASE("is_held_out: what a small share holds out, a larger one does too", "[train][task]") {
  for (std::int64_t i = 0; i < 500; ++i) {
    const Ids ids{i, 3};
    if (is_held_out(ids, 0.25)) REQUIRE(is_held_out(ids, 0.5));
  }
}

TEST_CASE("is_held_out: the order of ids and their number matter", "[train][task]") {
  int by_order = 0, by_length = 0;
  for (std::int64_t i = 1; i <= 200; ++i) {
    by_order += is_held_out(Ids{i, 0}, 0.5) != is_held_out(Ids{0, i}, 0.5) ? 1 : 0;
    by_length += is_held_out(Ids{i}, 0.5) != is_held_out(Ids{i, 0}, 0.5) ? 1 : 0;
  }
  CHECK(by_order > 60);
  CHECK(by_length > 60);
}

TEST_CASE("is_held_out: the split stays the same in every version", "[train][task]") {
  // If the split changed, models trained before would be scored on instances that they have seen.
  std::string split;
  for (std::int64_t i = 0; i < 24; ++i) split += is_held_out(Ids{i, 2 * i, 7}, 0.5) ? 'x' : '.';
  CHECK(split == ".x....xx.xxxx..x...xx..x");
}

TEST_CASE("is_held_out: a share of none or all is refused", "[train][task]") {
  const double share = GENERATE(0.0, 1.0, -0.1, std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(is_held_out(Ids{1}, share), ValueError);
}
