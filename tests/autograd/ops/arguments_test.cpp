#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// What ops take as arguments, and what must not compile because it would mean something else.

using namespace fovea;

namespace {

using Values = std::vector<double>;

// Calls of ops with an axis, each of which exists for the arguments that the op takes.
constexpr std::tuple axis_ops(
    [](const Tensor& x, auto axis) -> decltype(sum(x, axis)) { return sum(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(mean(x, axis)) { return mean(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(max(x, axis)) { return max(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(logsumexp(x, axis)) { return logsumexp(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(argmax(x, axis)) { return argmax(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(softmax(x, axis)) { return softmax(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(log_softmax(x, axis)) { return log_softmax(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(transpose(x, axis)) { return transpose(x, axis); },
    [](const Tensor& x, auto axis) -> decltype(permute(x, axis)) { return permute(x, axis); });

template <class Argument>
constexpr auto how_many_take = std::apply(
    [](const auto&... op) { return (0 + ... + int{std::invocable<decltype(op), const Tensor&, Argument>}); },
    axis_ops);
static_assert(how_many_take<int> == 9 && how_many_take<std::int64_t> == 9 && how_many_take<std::size_t> == 9);
static_assert(how_many_take<Axis> == 9);
static_assert(how_many_take<double> == 0 && how_many_take<float> == 0 && how_many_take<bool> == 0);

template <class Argument>
concept takes_position = requires(const Tensor& x, Argument i) {
  x[i];
};
template <class Argument>
concept takes_size = requires(Argument n) {
  arange(n);
};
template <class Argument>
concept takes_parts = requires(const Tensor& x, Argument n) {
  split(x, 0, n);
};
static_assert(takes_position<int> && takes_position<std::size_t>);
static_assert(!takes_position<double> && !takes_position<bool>);
static_assert(takes_size<int> && !takes_size<double>);
static_assert(takes_parts<int> && takes_parts<Shape> && !takes_parts<double> && !takes_parts<bool>);

// Assigning to a part of a tensor would change nothing.
template <class X>
concept assigns_to_part = requires(X x) {
  x[0] = x;
};
template <class X>
concept adds_to_part = requires(X x) {
  x[0] += x;
};
static_assert(!assigns_to_part<Tensor> && !adds_to_part<Tensor>);

Tensor leaf(Tensor x) { return x.set_requires_grad(); }

}  // namespace

TEST_CASE("split takes a list of sizes, of one piece too, or a number of pieces") {
  const Tensor x = ones({6});
  CHECK(split(x, 0, {6}).size() == 1);
  CHECK(split(x, 0, {2, 4}).size() == 2);
  CHECK(split(x, 0, 3).size() == 3);
}

TEST_CASE("maximum and minimum compare with a number as with a tensor") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = leaf(tensor({{-2, 0, 3}, {0.5, 0, -1}}, dtype));
  const Tensor high = maximum(x, 0.0);
  CHECK(high.dtype() == dtype);
  CHECK(high.to_vector() == Values{0, 0, 3, 0.5, 0, 0});
  CHECK(maximum(0, x).to_vector() == high.to_vector());
  CHECK(minimum(x, 0).to_vector() == Values{-2, 0, 0, 0, 0, -1});
  CHECK(minimum(0.25, x).to_vector() == Values{-2, 0, 0.25, 0.25, 0, -1});
  const Tensor dy = tensor({{2, 3, 5}, {7, 11, 13}}, dtype);
  CHECK(grad({high}, {x}, {.gradients = {dy}})[0].to_vector() == Values{0, 1.5, 5, 7, 5.5, 0});
}

TEST_CASE("x[i] is the part at a position of the first axis") {
  const Tensor x = leaf(tensor({{2, 3, 5}, {7, 11, 13}}, f64));
  CHECK(x[0].to_vector() == Values{2, 3, 5});
  CHECK(x[-1].to_vector() == Values{7, 11, 13});
  CHECK(x[1][-2].item() == 11);
  CHECK_THROWS_AS(x[2], IndexError);
  CHECK_THROWS_AS(x[-3], IndexError);
  CHECK_THROWS_AS(x[std::size_t{0} - 1], IndexError);
  CHECK_THROWS_AS(x[0][0][0], ShapeError);
  backward(x[1][0] * 3.0 + x[-1][0]);
  CHECK(x.grad().to_vector() == Values{0, 0, 0, 4, 0, 0});
}

TEST_CASE("x += y is x = x + y") {
  const Tensor w = leaf(tensor({2, 3, 5}, f64));
  Tensor x = w * 1.0;
  const Tensor before = x;
  x += w;
  x -= 0.5;
  x *= w;
  x /= 4;
  x += 1;
  x -= w;
  x *= 2;
  x /= w;
  // ((2 w - 0.5) w / 4 + 1 - w) 2 / w = w + 2 / w - 2.25
  const Tensor expected = w + 2.0 / w - 2.25;
  for (std::size_t i = 0; i < 3; ++i) CHECK(x.to_vector()[i] == Approx(expected.to_vector()[i]));
  CHECK(before.to_vector() == Values{2, 3, 5});
  backward(x, {.gradient = ones({3}, f64)});
  const Values slope = w.grad().to_vector();
  CHECK(slope[0] == Approx(0.5));
  CHECK(slope[1] == Approx(1 - 2.0 / 9));

  Tensor plain = tensor({1, 2}, f64);
  const Tensor same = plain;
  plain += plain;
  CHECK(plain.to_vector() == Values{2, 4});
  CHECK(same.to_vector() == Values{1, 2});
}

TEST_CASE("x += y refuses to make another tensor of a parameter") {
  Tensor w = leaf(ones({3}));
  CHECK_THROWS_WITH(w += 1.0, ContainsSubstring("[+=]") && ContainsSubstring("leaf"));
  CHECK_THROWS_AS(w -= w, GraphError);
  {
    const NoGrad off;
    CHECK_THROWS_AS(w *= 0.5, GraphError);
    CHECK_THROWS_AS(w /= 2, GraphError);
  }
  CHECK(w.is_leaf());
  CHECK(w.to_vector() == Values{1, 1, 1});
}
