#include "fovea/train/data/batch.h"

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

Ids list(const Indices& x) { return {x.values().begin(), x.values().end()}; }

}  // namespace

TEST_CASE("next_token_batch: targets are the inputs one step later, padded to the longest", "[train]") {
  const std::vector<Ids> sequences{{1, 5, 6, 7}, {1, 8}, {1, 9, 3}};
  const Batch batch = next_token_batch(sequences, 0);
  CHECK(to_string(batch.inputs.shape()) == "(3, 3)");
  CHECK(to_string(batch.targets.shape()) == "(3, 3)");
  CHECK(list(batch.inputs) == Ids{1, 5, 6, 1, 0, 0, 1, 9, 0});
  CHECK(list(batch.targets) == Ids{5, 6, 7, 8, 0, 0, 9, 3, 0});
}

TEST_CASE("next_token_batch: an empty batch or a sequence without a next id is refused", "[train]") {
  CHECK_THROWS_AS(next_token_batch({}, 0), ValueError);
  const std::vector<Ids> lonely{{1, 2}, {1}};
  CHECK_THROWS_AS(next_token_batch(lonely, 0), ValueError);
}

TEST_CASE("next_token_batch: targets may have another padding, which a loss ignores", "[train]") {
  const std::vector<Ids> sequences{{1, 5, 6}, {1, 8}};
  const Batch batch = next_token_batch(sequences, 0, ignored_target);
  CHECK(list(batch.inputs) == Ids{1, 5, 1, 0});
  CHECK(list(batch.targets) == Ids{5, 6, 8, -1});
}
