#include "fovea/autograd/tensor/nested_list.h"

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

// A list keeps the values that are written: no fraction is cut, and no number becomes true.
static_assert(std::is_constructible_v<NestedList<double>, int> &&
              std::is_constructible_v<NestedList<double>, float>);
static_assert(!std::is_constructible_v<NestedList<std::int64_t>, double>);
static_assert(!std::is_constructible_v<NestedList<std::int64_t>, bool>);
static_assert(!std::is_constructible_v<NestedList<std::int64_t>, std::uint64_t>);
static_assert(!std::is_constructible_v<NestedList<bool>, int>);
static_assert(!std::is_constructible_v<NestedList<bool>, const char*>);

}  // namespace

TEST_CASE("the depth of the braces is the number of axes") {
  CHECK(tensor({1.0}).shape() == Shape{1});
  CHECK(tensor({1, 2, 3}).shape() == Shape{3});
  CHECK(tensor({{1.0}}).shape() == Shape{1, 1});
  CHECK(tensor({{1.0}, {2.0}}).shape() == Shape{2, 1});
  CHECK(tensor({{1.0, 2.0}}).shape() == Shape{1, 2});
  CHECK(tensor({{{1.0}}}).shape() == Shape{1, 1, 1});
  CHECK(tensor({{{1.0}, {2.0}}, {{3.0}, {4.0}}}).shape() == Shape{2, 2, 1});
  CHECK(tensor({{{{1, 2, 3}}}, {{{4, 5, 6}}}}).shape() == Shape{2, 1, 1, 3});
  CHECK(tensor({{{{1, 2, 3}}}, {{{4, 5, 6}}}}).to_vector() == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(tensor({}).shape() == Shape{0});
  CHECK(tensor({{}, {}}).shape() == Shape{2, 0});
  CHECK(tensor(3.5).shape() == Shape{});
  CHECK(tensor({{1.0}, {2.0}}, f64).dtype() == f64);

  CHECK(Indices({{3}}).shape() == Shape{1, 1});
  CHECK(Indices{{3}, {5}}.shape() == Shape{2, 1});
  CHECK(Indices({3}).shape() == Shape{1});
  CHECK(Indices{3, 5}.shape() == Shape{2});
  CHECK(Indices({{{3, 5}}}).shape() == Shape{1, 1, 2});
  CHECK(Indices{}.shape() == Shape{0});
  enum { row = 7 };
  CHECK(Indices{row, 2}.values()[0] == 7);
  CHECK(tensor({row}).item() == 7);
  CHECK(Indices({2, 1}, std::vector<std::int64_t>{7, 11}).shape() == Shape{2, 1});
  CHECK(Bool({{true}}).shape() == Shape{1, 1});
  CHECK(Bool({{true}, {false}}).shape() == Shape{2, 1});
  CHECK(Bool{true, false}.shape() == Shape{2});
  CHECK(Bool({{true, false}}).values()[0] == 1);
}

TEST_CASE("lists side by side have one shape") {
  CHECK_THROWS_WITH(tensor({{1, 2, 3}, {4, 5}}),
                    ContainsSubstring("[tensor]") && ContainsSubstring("rows of 3 and 2"));
  CHECK_THROWS_WITH(tensor({{{1, 2}, {3, 4}}, {{5, 6}}}),
                    ContainsSubstring("(2, 2)") && ContainsSubstring("(1, 2)"));
  CHECK_THROWS_AS(tensor({1, {2}}), ShapeError);
  CHECK_THROWS_AS(tensor({{{1}}, {2}}), ShapeError);
  CHECK_THROWS_WITH(Indices({{1}, {2, 3}}), ContainsSubstring("[indices]"));
  CHECK_THROWS_WITH(Bool({{true}, {true, true}}), ContainsSubstring("[bool]"));
}

TEST_CASE("Indices and Bool stay whole when they are moved from") {
  Indices ids{{2, 3, 5}};
  const Indices taken = std::move(ids);
  CHECK(taken.values()[2] == 5);
  CHECK(ids.numel() == static_cast<std::int64_t>(ids.values().size()));  // NOLINT(bugprone-use-after-move)
  CHECK(to_string(ids) == to_string(taken));
  Bool seen{true, false};
  const Bool other = std::move(seen);
  CHECK(all(seen) == all(other));  // NOLINT(bugprone-use-after-move)
}
