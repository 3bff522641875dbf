#include <utility>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/modes.h"
#include "fovea/gradcheck/gradcheck.h"
#include "fovea/gradcheck/layer_gradcheck.h"
#include "fovea/layers/linear.h"
#include "tests/gradcheck/square.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

Tensor product(const Tensor& a, const Tensor& b) { return a * b; }

template <auto f>
inline constexpr bool taken = detail::takes_tensors_alone<decltype(f)>();

// The name of a function does not carry its default arguments, which a static assertion of gradcheck says.
static_assert(taken<relu> && taken<product> && taken<add>);
static_assert(!taken<softmax> && !taken<gelu> && !taken<embedding>);

// Wrong on purpose: its gradient lacks a factor 2.
Tensor wrong_square(const Tensor& x) {
  return record("wrong", x * x, {x}, {x},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {dy * saved[0]};
                });
}

}  // namespace

TEST_CASE("gradcheck takes functions by their names, overloaded ones too") {
  const Tensor x = random({3, 5}), y = random({3, 5});
  CHECK(gradcheck(tanh, {{"x", x}}));
  CHECK(gradcheck(tanh, x));
  CHECK(gradcheck(product, {{"a", x}, {"b", y}}));
  CHECK(gradcheck(sum, {{"x", x}}));
  CHECK(gradcheck(sum, x));
  CHECK(gradcheck(max, {{"x", x}}));
  CHECK(gradcheck(maximum, {{"a", x}, {"b", y}}));
  CHECK(gradcheck([](const Tensor& t) { return softmax(t); }, {{"x", x}}));
  CHECK(gradcheck([](const Tensor& t) { return softmax(t); }, x));
  Tensor (*const pointer)(const Tensor&) = exp;
  CHECK(gradcheck(pointer, {{"x", x}}));
  CHECK(gradcheck(pointer, x));
  CHECK_THROWS_AS(gradcheck(product, {{"a", x}}), ValueError);
}

TEST_CASE("gradcheck and compare_functions say the same inside NoGrad") {
  Rng rng(3);
  const Tensor x = random({3, 5});
  const NoGrad off;
  for (const int order : {1, 2}) {
    CHECK(gradcheck(tanh, {{"x", x}}, {.order = order}));
    CHECK(gradcheck(Linear(5, 7, rng), x, {.order = order}));
    CHECK_FALSE(gradcheck(wrong_square, {{"x", x}}, {.order = order}));
  }
  Tensor inner = random({3});
  CHECK(gradcheck_in_place([&] { return inner * inner; }, {{"inner", inner}}));
  const NamedFunction right = [](const Inputs& in) { return in["x"] * in["x"]; };
  const NamedFunction wrong = [](const Inputs& in) { return wrong_square(in["x"]); };
  CHECK(compare_functions(right, right, {{"x", x}}));
  CHECK_FALSE(compare_functions(wrong, right, {{"x", x}}));
  CHECK_FALSE(recording());
}
