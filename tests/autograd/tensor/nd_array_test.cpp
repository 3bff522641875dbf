#include "fovea/autograd/tensor/nd_array.h"

#include <type_traits>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

std::vector<int> truth(const Bool& x) { return {x.values().begin(), x.values().end()}; }
std::vector<std::int64_t> numbers(const Indices& x) { return {x.values().begin(), x.values().end()}; }

}  // namespace

TEST_CASE("a Tensor becomes neither Indices nor Bool, nor they a Tensor") {
  CHECK_FALSE(std::is_convertible_v<Tensor, Indices>);
  CHECK_FALSE(std::is_convertible_v<Tensor, Bool>);
  CHECK_FALSE(std::is_convertible_v<Tensor, bool>);
  CHECK_FALSE(std::is_convertible_v<Indices, Tensor>);
  CHECK_FALSE(std::is_convertible_v<Bool, Tensor>);
  CHECK_FALSE(std::is_convertible_v<Bool, bool>);
  CHECK_FALSE(std::is_convertible_v<Indices, Bool>);
}

TEST_CASE("Indices are made from values") {
  const Indices x{{1, 2, 3}, {4, 5, 6}};
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.rank() == 2);
  CHECK(x.numel() == 6);
  CHECK(x.size(-1) == 3);
  CHECK(x[4] == 5);
  CHECK(numbers(x.reshape({3, 2})) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(Indices{7, 8}.shape() == Shape{2});
  CHECK(Indices().numel() == 0);
  CHECK_THROWS_AS((Indices{{1, 2}, {3}}), ShapeError);
  CHECK_THROWS_AS(x.reshape({4}), ShapeError);
  CHECK_THROWS_WITH(x.reshape({4}), ContainsSubstring("[reshape]") && ContainsSubstring("(2, 3)") &&
                                        ContainsSubstring("(4,)"));
  CHECK_THROWS_AS(Indices({2, 2}, std::vector<std::int64_t>{1, 2, 3}), ShapeError);
  CHECK_THROWS_AS(x.size(2), ShapeError);
}

TEST_CASE("Bool is made from values and combined elementwise, with broadcasting") {
  const Bool row{true, false, true};
  const Bool column = Bool{true, false}.reshape({2, 1});
  CHECK((row & column).shape() == Shape{2, 3});
  CHECK(truth(row & column) == std::vector<int>{1, 0, 1, 0, 0, 0});
  CHECK(truth(row | column) == std::vector<int>{1, 1, 1, 1, 0, 1});
  CHECK(truth(!row) == std::vector<int>{0, 1, 0});
  CHECK(truth(Bool{{true, false}, {false, true}}) == std::vector<int>{1, 0, 0, 1});
  CHECK_THROWS_AS(row & Bool({true, false}), ShapeError);
  CHECK_THROWS_AS((Bool{{true, false}, {true}}), ShapeError);
}

TEST_CASE("any along each axis, and any and all of everything") {
  std::vector<std::uint8_t> values(2 * 3 * 5, 0);
  values[1 * 15 + 2 * 5 + 3] = 1;
  const Bool x({2, 3, 5}, values);
  CHECK(any(x, 0).shape() == Shape{1, 3, 5});
  CHECK(any(x, 1).shape() == Shape{2, 1, 5});
  CHECK(any(x, -1).shape() == Shape{2, 3, 1});
  CHECK(truth(any(x, -1)) == std::vector<int>{0, 0, 0, 0, 0, 1});
  CHECK(truth(any(any(x, 1), 0)) == std::vector<int>{0, 0, 0, 1, 0});
  CHECK(any(x));
  CHECK_FALSE(all(x));
  CHECK(all(!Bool({2, 2}, std::vector<std::uint8_t>(4, 0))));
  CHECK_FALSE(any(Bool()));
  CHECK(all(Bool()));
  CHECK(truth(any(Bool({2, 0}, std::vector<std::uint8_t>()), 1)) == std::vector<int>{0, 0});
  CHECK_THROWS_AS(any(x, 3), ShapeError);
}

TEST_CASE("comparisons give Bool, and argmax Indices") {
  const Tensor x = tensor({{1, 5, 2}, {7, 3, 4}});
  CHECK(truth(x > 2.5) == std::vector<int>{0, 1, 0, 1, 1, 1});
  CHECK(truth(x == transpose(transpose(x))) == std::vector<int>(6, 1));
  CHECK(numbers(argmax(x)) == std::vector<std::int64_t>{1, 0});
  CHECK(numbers(argmax(x, 0)) == std::vector<std::int64_t>{1, 0, 1});
  CHECK(argmax(x, 0).shape() == Shape{3});
}
