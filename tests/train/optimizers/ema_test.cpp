#include "fovea/train/optimizers/ema.h"

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/linear.h"
#include "fovea/layers/state.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

void set(Tensor p, double value) {
  dispatch(p.dtype(), [&]<class T>() { std::fill_n(p.mutable_data<T>(), p.numel(), static_cast<T>(value)); });
}

TEST_CASE("Ema: averages as computed by hand, in f32 and f64", "[train]") {
  const Tensor p = parameter(full({3}, 8, GENERATE(f32, f64)));
  Ema average({{"p", p}}, 0.75);
  const auto value = [&] { return state(average).tensors[0].tensor.at({0}); };
  CHECK(value() == 8);
  average.update();
  CHECK(value() == 8);
  set(p, 16);
  average.update();
  CHECK(value() == 10);
  set(p, -2);
  average.update();
  CHECK(value() == 7);
  CHECK(p.at({0}) == -2);
}

TEST_CASE("Ema: swap exchanges weights and averages, and a second swap restores them", "[train]") {
  const Tensor p = parameter(full({3}, 8));
  Ema average({{"p", p}}, 0.75);
  set(p, 16);
  average.update();
  const auto version = p.version();
  average.swap();
  CHECK(average.swapped());
  CHECK(p.at({1}) == 10);
  CHECK(p.version() > version);
  CHECK_THROWS_WITH(average.update(), ContainsSubstring("[Ema::update] weights and averages are swapped"));
  CHECK_THROWS_AS(state(average), ValueError);
  average.swap();
  CHECK(p.at({1}) == 16);
  CHECK(state(average).tensors[0].tensor.at({1}) == 10);
}

TEST_CASE("Ema: averages are copied into a clone, saved and loaded", "[train]") {
  Rng rng(1);
  const Linear layer(3, 5, rng);
  Ema average(named_parameters(layer), 0.5);
  const std::vector<double> before = layer.b.to_vector();
  set(layer.b, 4);
  average.update();

  const Linear averaged = to(layer, f64);
  average.copy_to(named_parameters(averaged));
  CHECK(averaged.W.to_vector() == layer.W.to_vector());
  CHECK(averaged.b.at({2}) == Approx(0.5 * before[2] + 2));

  CHECK(state(average).tensors[1].name == "b.average");
  Ema again(named_parameters(layer), 0.5);
  load(again, state(average));
  CHECK(state(again).tensors[1].tensor.to_vector() == state(average).tensors[1].tensor.to_vector());

  const Linear other(3, 2, rng);
  const std::vector<double> untouched = other.W.to_vector();
  CHECK_THROWS_WITH(average.copy_to(named_parameters(other)), ContainsSubstring("parameter 0 is 'W' (3, 2)"));
  CHECK(other.W.to_vector() == untouched);
}

TEST_CASE("Ema: wrong arguments are errors", "[train]") {
  CHECK_THROWS_WITH(Ema({{"p", zeros({3})}, {"p", zeros({5})}}, 0.5),
                    ContainsSubstring("[Ema] two parameters are named 'p'"));
  const Tensor p = parameter(zeros({3}));
  CHECK_THROWS_AS(Ema({}, 0.5), ValueError);
  CHECK_THROWS_AS(Ema({{"p", p}}, 1), ValueError);
  CHECK_THROWS_AS(Ema({{"p", p}}, -0.1), ValueError);
  const Ema average({{"p", p}}, 0.5);
  CHECK_THROWS_WITH(average.copy_to({}), ContainsSubstring("1 averages but 0 parameters"));
  CHECK_THROWS_AS(average.copy_to({{"q", p}}), ValueError);
}

}  // namespace
}  // namespace fovea
