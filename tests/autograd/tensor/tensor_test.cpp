#include "fovea/autograd/tensor/tensor.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Values = std::vector<double>;

}  // namespace

TEST_CASE("tensors are made with values, shape and dtype") {
  const Dtype dtype = GENERATE(f32, f64);
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, dtype);
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.strides() == Strides{3, 1});
  CHECK(x.dtype() == dtype);
  CHECK(x.rank() == 2);
  CHECK(x.numel() == 6);
  CHECK(x.size(0) == 2);
  CHECK(x.size(-1) == 3);
  CHECK(x.to_vector() == Values{1, 2, 3, 4, 5, 6});
  CHECK(x.at({1, 0}) == 4);
  CHECK(tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, dtype).at({1, 0, 1}) == 6);
  CHECK(scalar(3, dtype).shape() == Shape{});
  CHECK(scalar(3, dtype).item() == 3);
  CHECK(zeros({2, 3}, dtype).to_vector() == Values(6, 0));
  CHECK(ones({2, 3}, dtype).to_vector() == Values(6, 1));
  CHECK(full({2, 3}, 0.5, dtype).to_vector() == Values(6, 0.5));
  CHECK(arange(4, dtype).to_vector() == Values{0, 1, 2, 3});
  CHECK(eye(3, dtype).to_vector() == Values{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(from_values(Values{1, 2, 3, 4, 5, 6}, {3, 2}, dtype).at({2, 1}) == 6);
  CHECK(zeros({3, 0}, dtype).numel() == 0);
  CHECK(tensor({1, 2}).dtype() == f32);
}

TEST_CASE("what does not make a tensor is refused") {
  CHECK_THROWS_WITH(tensor({{1, 2, 3}, {4, 5}}),
                    ContainsSubstring("[tensor]") && ContainsSubstring("rows of 3 and 2"));
  CHECK_THROWS_AS(tensor({{1, 2, 3}, {4, 5}}), ShapeError);
  CHECK_THROWS_AS(tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7}}}), ShapeError);
  CHECK_THROWS_AS(tensor({{{1, 2}, {3, 4}}, {{5, 6}}}), ShapeError);
  CHECK_THROWS_WITH(from_values(Values{1, 2, 3}, {2, 2}),
                    ContainsSubstring("[from_values] 3 values for shape (2, 2)"));
  CHECK_THROWS_WITH(zeros({3, -1}), ContainsSubstring("(3, -1)") && ContainsSubstring("negative"));
  CHECK_THROWS_AS(zeros({3, -1}), ShapeError);
}

TEST_CASE("an undefined handle says so") {
  const Tensor none;
  CHECK_FALSE(none.defined());
  CHECK_THROWS_WITH(none.shape(), ContainsSubstring("undefined Tensor"));
  CHECK_THROWS_AS(none.numel(), Error);
  CHECK_THROWS_AS(none + tensor({1, 2}), Error);
  CHECK_THROWS_AS(exp(none), Error);
  CHECK_THROWS_AS(matmul(tensor({1, 2}), none), Error);
  CHECK_THROWS_AS(none.requires_grad(), Error);
}

TEST_CASE("an element is read by its position, which is checked") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK_THROWS_AS(x.at({2, 0}), IndexError);
  CHECK_THROWS_WITH(x.at({2, 0}), ContainsSubstring("(2, 0)") && ContainsSubstring("(2, 3)"));
  CHECK_THROWS_AS(x.at({0, -1}), IndexError);
  CHECK_THROWS_AS(x.at({0}), IndexError);
  CHECK_THROWS_AS(x.item(), ShapeError);
  CHECK_THROWS_WITH(x.item(), ContainsSubstring("[item]") && ContainsSubstring("(2, 3)"));
  CHECK(slice(slice(x, 0, 1, 2), 1, 2, 3).item() == 6);
  CHECK_THROWS_WITH(x.size(2), ContainsSubstring("[size] axis 2") && ContainsSubstring("rank 2"));
  CHECK_THROWS_AS(x.size(-3), ShapeError);
  CHECK_THROWS_WITH(scalar(1).size(0), ContainsSubstring("scalar"));
}

TEST_CASE("data is read only as its own dtype") {
  Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(x.data<float>()[4] == 5);
  CHECK_THROWS_AS(x.data<double>(), DtypeError);
  CHECK_THROWS_WITH(x.data<double>(), ContainsSubstring("f32") && ContainsSubstring("f64"));
  CHECK_THROWS_AS(x.mutable_data<double>(), DtypeError);
  // A view's data begins at its first element.
  CHECK(slice(x, 0, 1, 2).data<float>()[0] == 4);
}

TEST_CASE("copies and views share their array, clones do not") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  Tensor shared = x;
  const Tensor view = transpose(x);
  const Tensor copy = clone(x);
  shared.mutable_data<float>()[1] = 7;
  CHECK(x.at({0, 1}) == 7);
  CHECK(view.at({1, 0}) == 7);
  CHECK(copy.at({0, 1}) == 2);
  CHECK(x.version() == 1);
  CHECK(view.version() == 1);
  CHECK(copy.version() == 0);
}

TEST_CASE("views come without a copy wherever strides allow") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  const auto shares = [&](const Tensor& y) { return y.data<float>() == x.data<float>(); };
  CHECK(shares(reshape(x, {3, 2})));
  CHECK(shares(reshape(x, {1, 2, 1, 3})));
  CHECK(shares(transpose(x)));
  CHECK(shares(permute(x, {1, 0})));
  CHECK(shares(broadcast_to(x, {5, 2, 3})));
  CHECK(shares(slice(x, 1, 0, 2)));
  CHECK(shares(select(x, 0, 0)));
  CHECK(shares(contiguous(x)));
  CHECK(shares(x.detach()));
  CHECK_FALSE(shares(clone(x)));
  CHECK_FALSE(shares(contiguous(transpose(x))));
  CHECK_FALSE(shares(reshape(transpose(x), {6})));
  // Splitting and joining axes of a view that steps evenly is a view as well.
  const Tensor wide = zeros({4, 10});
  CHECK(reshape(slice(wide, 1, 0, 6), {4, 2, 3}).data<float>() == wide.data<float>());
  CHECK(reshape(transpose(reshape(wide, {4, 2, 5}), 0, 1), {2, 4, 5, 1}).data<float>() == wide.data<float>());
}

TEST_CASE("strides and contiguity of views") {
  const Tensor x = zeros({2, 3, 5});
  CHECK(x.is_contiguous());
  CHECK(transpose(x, 0, 2).strides() == Strides{1, 5, 15});
  CHECK_FALSE(transpose(x).is_contiguous());
  CHECK(transpose(zeros({1, 3})).is_contiguous());
  CHECK(slice(x, 2, 1, 5, 2).strides() == Strides{15, 5, 2});
  CHECK(slice(x, 2, 1, 5, 2).shape() == Shape{2, 3, 2});
  CHECK(slice(x, 0, 1, 2).is_contiguous());
  CHECK(broadcast_to(zeros({3, 1}), {2, 3, 5}).strides() == Strides{0, 1, 0});
  CHECK(zeros({3, 0}).is_contiguous());
}

TEST_CASE("reshape of a view has the values of a copy") {
  // Every way to group the axes of a permuted and sliced tensor.
  const Tensor base = reshape(arange(2 * 3 * 4 * 5), {2, 3, 4, 5});
  for (const Axes& order : {Axes{0, 1, 2, 3}, Axes{1, 0, 3, 2}, Axes{2, 3, 0, 1}, Axes{3, 1, 0, 2}}) {
    for (const std::int64_t step : {1, 2}) {
      const Tensor x = slice(permute(base, order), 0, 0, -1, step);
      const std::int64_t n = x.numel();
      for (const Shape& shape : {Shape{n}, Shape{x.size(0), n / x.size(0)}, Shape{n / x.size(3), x.size(3)},
                                 Shape{x.size(0), x.size(1) * x.size(2), x.size(3)}, Shape{1, n, 1}}) {
        CHECK(reshape(x, shape).to_vector() == x.to_vector());
      }
    }
  }
}

TEST_CASE("buffers are aligned to a cache line, whatever their size") {
  for (const std::int64_t n : {1, 3, 17, 255, 257, 1000, 100'003}) {
    CHECK(reinterpret_cast<std::uintptr_t>(zeros({n}).data<float>()) % 64 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(zeros({n}, f64).data<double>()) % 64 == 0);
  }
}

TEST_CASE("no result depends on an element's address") {
  Rng rng(3);
  for (const std::int64_t n : {1, 7, 16, 17, 37, 101}) {
    const Tensor x = randn({n}, rng);
    for (const std::int64_t offset : {1, 2, 3, 5, 13}) {
      const Tensor shifted = slice(concat({zeros({offset}), x}, 0), 0, offset, offset + n);
      CHECK(exp(shifted).to_vector() == exp(x).to_vector());
      CHECK(tanh(shifted).to_vector() == tanh(x).to_vector());
      CHECK(softmax(shifted).to_vector() == softmax(x).to_vector());
      CHECK(sum(shifted).item() == sum(x).item());
      CHECK(layer_norm(shifted).to_vector() == layer_norm(x).to_vector());
      CHECK(matmul(shifted, shifted).item() == matmul(x, x).item());
      // Nor on what lies around it: the same element gives the same in a shorter row.
      CHECK(exp(slice(x, 0, 0, (n + 1) / 2)).to_vector() == slice(exp(x), 0, 0, (n + 1) / 2).to_vector());
    }
  }
}

TEST_CASE("shapes print as Python writes tuples") {
  CHECK(to_string(Shape{}) == "()");
  CHECK(to_string(Shape{5}) == "(5,)");
  CHECK(to_string(Shape{2, 3, 5}) == "(2, 3, 5)");
}

TEST_CASE("shapes broadcast from the right") {
  CHECK(broadcast_shapes("op", {2, 1, 5}, {3, 1}) == Shape{2, 3, 5});
  CHECK(broadcast_shapes("op", {}, {2, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes("op", {1}, {0}) == Shape{0});
  CHECK(broadcast_shapes("op", {2, 0}, {2, 1}) == Shape{2, 0});
  CHECK_THROWS_AS(broadcast_shapes("op", {2, 3}, {2, 5}), ShapeError);
  CHECK_THROWS_WITH(broadcast_shapes("op", {2, 3}, {2, 5}),
                    ContainsSubstring("[op]") && ContainsSubstring("(2, 3)") && ContainsSubstring("(2, 5)"));
  CHECK_THROWS_AS(broadcast_shapes("op", {0}, {2}), ShapeError);
}

TEST_CASE("shapes longer than what fits inside them work") {
  const Tensor x = zeros({1, 2, 1, 3, 1, 2, 1});
  CHECK(x.numel() == 12);
  Shape copied = x.shape();
  Shape moved = std::move(copied);
  CHECK(moved == Shape{1, 2, 1, 3, 1, 2, 1});
  moved.erase(moved.begin());
  moved.insert(moved.begin() + 2, 7);
  CHECK(moved == Shape{2, 1, 7, 3, 1, 2, 1});
  CHECK(permute(x, {6, 5, 4, 3, 2, 1, 0}).shape() == Shape{1, 2, 1, 3, 1, 2, 1});
  CHECK(sum(x + ones({2, 1}), {1, 3}).shape() == Shape{1, 1, 1, 2, 1});
}
