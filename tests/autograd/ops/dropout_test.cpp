#include <limits>

#include "fovea/autograd/base/parallel.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

TEST_CASE("a TrainMode scope is open until it ends or is suspended") {
  CHECK_FALSE(training());
  CHECK_FALSE(training_state());
  {
    const TrainMode outer(1);
    CHECK(training());
    {
      const EvalMode suspended;
      CHECK_FALSE(training());
      const TrainMode inner(2);
      CHECK(training_state() == Rng(2).state());
    }
    CHECK(training_state() == Rng(1).state());
  }
  CHECK_FALSE(training());
}

TEST_CASE("dropout keeps 1 - p of the elements, scaled so that the mean stays") {
  const Dtype dtype = GENERATE(f32, f64);
  const TrainMode scope(3);
  const double p = 0.3;
  const Tensor y = dropout(ones({100, 999}, dtype), p);
  std::size_t kept = 0;
  for (const double value : y.to_vector()) {
    if (value != 0) CHECK(value == Approx(1 / (1 - p)));
    kept += value != 0;
  }
  // Four standard deviations.
  CHECK(static_cast<double>(kept) == Approx(99900 * (1 - p)).margin(4 * std::sqrt(99900 * p * (1 - p))));
}

TEST_CASE("dropout at 1 gives zeros, also for NaN, and at 0 the input") {
  const TrainMode scope(5);
  const Tensor x = tensor({1, std::numeric_limits<double>::quiet_NaN(), 3});
  CHECK(dropout(x, 1).to_vector() == std::vector<double>{0, 0, 0});
  CHECK(dropout(tensor({1, 2}), 0).to_vector() == std::vector<double>{1, 2});
}

TEST_CASE("dropout is repeated by a scope with the same state, on any number of threads") {
  const Tensor x = ones({3, 300'001});
  const TrainMode scope(7);
  const Tensor first = dropout(x, 0.5);
  const Rng::State between = *training_state();
  const Tensor second = dropout(x, 0.5);
  CHECK(any(first != second));
  const int before = threads();
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    const TrainMode repeated{Rng(between)};
    CHECK_FALSE(any(dropout(x, 0.5) != second));
  }
  set_threads(before);
  CHECK(scope.rng().state() == Rng::State{7, 2});
}

TEST_CASE("dropout's gradient is dropped where its value was") {
  const TrainMode scope(11);
  const Tensor x = ones({1000}).set_requires_grad();
  const Tensor y = dropout(x, 0.5);
  const Tensor dx = grad({y}, {x}, {.gradients = {ones({1000})}})[0];
  CHECK_FALSE(any(dx != y));
}
