#include "fovea/layers/dropout.h"

#include <algorithm>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

TEST_CASE("Dropout: only a TrainMode scope drops, and survivors are scaled", "[layers]") {
  const Dropout layer(0.25);
  const Tensor x = ones({101, 97});
  CHECK(layer(x).to_vector() == x.to_vector());
  const TrainMode training(7);
  const std::vector<double> y = layer(x).to_vector();
  const auto dropped = std::ranges::count(y, 0.0);
  CHECK(static_cast<double>(dropped) / static_cast<double>(y.size()) == Approx(0.25).margin(0.02));
  CHECK(std::ranges::all_of(y, [](double v) { return v == 0 || v == Approx(4.0 / 3); }));
  CHECK(layer(x).to_vector() != y);
  const EvalMode inference;
  CHECK(layer(x).to_vector() == x.to_vector());
}

TEST_CASE("Dropout: p = 1 gives zeros, and p = 0 the input", "[layers]") {
  const TrainMode training(7);
  const Tensor x = ones({3, 5});
  CHECK(Dropout(0)(x).to_vector() == x.to_vector());
  CHECK(Dropout(1)(x).to_vector() == std::vector<double>(15, 0));
}

TEST_CASE("Dropout: gradients", "[layers]") {
  Rng rng(1);
  CHECK(gradcheck(Dropout(0.25), randn({3, 5}, rng)).passed());
  const auto same_draws = [](const Tensor& x) {
    const TrainMode training(7);
    return Dropout(0.25)(x);
  };
  CHECK(gradcheck(same_draws, randn({3, 5}, rng), {.order = 2}).passed());
}

TEST_CASE("Dropout: p must be a probability", "[layers]") {
  CHECK_THROWS_AS(Dropout(-0.1), ValueError);
  CHECK_THROWS_AS(Dropout(1.5), ValueError);
}

}  // namespace
}  // namespace fovea
