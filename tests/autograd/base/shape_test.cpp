#include "fovea/autograd/base/shape.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

// Sizes that no array can have, wherever a shape is made.

using namespace fovea;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 32;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

template <class F>
void refuses(const char* what, const F& f) {
  INFO(what);
  CHECK_THROWS_AS(f(), ShapeError);
}

}  // namespace

TEST_CASE("numel is the product of the sizes, or an error") {
  CHECK(numel({}) == 1);
  CHECK(numel({2, 3, 5}) == 30);
  CHECK(numel({7, 0, 3}) == 0);
  CHECK(numel({std::int64_t{1} << 29, std::int64_t{1} << 29}) == std::int64_t{1} << 58);
  CHECK_THROWS_WITH(numel({huge, huge}), ContainsSubstring("(4294967296, 4294967296)"));
  CHECK_THROWS_WITH(numel({2, -3}), ContainsSubstring("(2, -3)") && ContainsSubstring("negative"));
  refuses("two negative sizes", [] { numel({-2, -3}); });
  refuses("zero times what overflows", [] { numel({0, huge, huge}); });
  refuses("what overflows times zero", [] { numel({huge, huge, 0}); });
  CHECK(numel(Shape(63, 1)) == 1);
  CHECK_THROWS_WITH(numel(Shape(64, 1)), ContainsSubstring("64") && ContainsSubstring("63"));
}

TEST_CASE("sizes whose product overflows are refused wherever an array is made") {
  Rng rng(3);
  const Tensor one = ones({1, 1});
  const Tensor wide = broadcast_to(one, {1, huge}), tall = broadcast_to(one, {huge, 1});
  refuses("zeros", [] { zeros({huge, huge}); });
  refuses("randn", [&] { randn({huge, huge}, rng); });
  refuses("arange", [] { arange(std::int64_t{1} << 62); });
  refuses("arange of less than nothing", [] { arange(-1); });
  refuses("eye", [] { eye(huge); });
  refuses("from_values", [] { from_values(std::vector<double>{}, {huge, huge}); });
  refuses("from_values, negative", [] { from_values(std::vector<double>(6), {-2, -3}); });
  refuses("broadcast_to", [&] { broadcast_to(one, {huge, huge}); });
  refuses("broadcast_to, negative", [&] { broadcast_to(ones({1}), {-1}); });
  refuses("add", [&] { wide + tall; });
  refuses("matmul", [&] { matmul(tall, wide); });
  refuses("comparison", [&] { static_cast<void>(wide < tall); });
  refuses("where", [&] { where(Bool{true}, wide, tall); });
  refuses("stack", [&] {
    const Tensor x = broadcast_to(one, {std::int64_t{1} << 58});
    stack({x, x}, 0);
  });
  refuses("concat", [] {
    const std::vector<Tensor> parts(64, broadcast_to(ones({1, 0}), {std::int64_t{1} << 58, 0}));
    concat(parts, 0);
  });
  refuses("embedding", [] {
    const Tensor table = broadcast_to(ones({1, 1}), {2, std::int64_t{1} << 57});
    embedding(table, {0, 1, 1});
  });
  refuses("reshape", [&] { reshape(zeros({0}), {0, huge, huge}); });
  refuses("reshape, negative", [&] { reshape(ones({6}), {-2, -3}); });
  refuses("Indices", [] { Indices({huge, huge}, [](std::int64_t*) {}); });
  refuses("Indices, negative", [] { Indices({-2, -3}, std::vector<std::int64_t>(6)); });
  refuses("Bool", [] { Bool({huge, huge}, [](std::uint8_t*) {}); });
  refuses("Bool, negative", [] { Bool({-1}, [](std::uint8_t*) {}); });
  refuses("reshape of Indices", [] { Indices{1, 2, 3, 4}.reshape({-2, -2}); });
  refuses("mask", [] { Mask::causal().materialize(1, 1, huge, huge); });
  refuses("64 axes", [] { sum(zeros(Shape(64, 1))); });
  refuses("split", [] { split(ones({3}), 0, Shape{largest, largest, 5}); });
}

TEST_CASE("63 axes are as good as one") {
  Shape shape(63, 1);
  shape[0] = 2, shape[62] = 3;
  const Tensor x = reshape(tensor({1, 2, 3, 5, 7, 11}), shape).detach().set_requires_grad();
  CHECK(sum(x).item() == 29);
  CHECK(sum(x, 62).to_vector() == std::vector<double>{6, 23});
  CHECK(sum(x, 0).to_vector() == std::vector<double>{6, 9, 14});
}

TEST_CASE("a step of slice beyond the axis shows its first element") {
  const Tensor x = ones({5, 7}).set_requires_grad();
  CHECK(slice(x, 0, 1, 5, largest).shape() == Shape{1, 7});
  CHECK(slice(x, 0, 2, 2, largest).shape() == Shape{0, 7});
}

#ifndef FOVEA_ADDRESS_SANITIZER
#ifndef FOVEA_THREAD_SANITIZER
TEST_CASE("an array for which there is no memory is an error with its shape and bytes") {
  constexpr std::int64_t n = std::int64_t{1} << 50;
  CHECK_THROWS_AS(empty({n}), MemoryError);
  CHECK_THROWS_WITH(empty({3, n}, f64), ContainsSubstring("[memory]") &&
                                            ContainsSubstring("(3, 1125899906842624)") &&
                                            ContainsSubstring("27,021,597,764,222,976 bytes"));
  CHECK_THROWS_AS(Indices({n}, [](std::int64_t*) {}), MemoryError);
  CHECK_THROWS_AS(exp(broadcast_to(ones({1}), {n})), MemoryError);
  CHECK(sum(ones({3})).item() == 3);
}
#endif
#endif
