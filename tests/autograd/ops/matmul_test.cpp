#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

// The product of matrices as three loops in double.
std::vector<double> multiply(const Tensor& a, const Tensor& b) {
  const std::int64_t m = a.size(0), inner = a.size(1), n = b.size(1);
  const std::vector<double> u = a.to_vector(), v = b.to_vector();
  std::vector<double> c(static_cast<std::size_t>(m * n), 0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t k = 0; k < inner; ++k) {
      for (std::int64_t j = 0; j < n; ++j) {
        c[static_cast<std::size_t>(i * n + j)] +=
            u[static_cast<std::size_t>(i * inner + k)] * v[static_cast<std::size_t>(k * n + j)];
      }
    }
  }
  return c;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!(std::abs(a[i] - b[i]) <= largest)) largest = std::abs(a[i] - b[i]);
  }
  return largest;
}

}  // namespace

TEST_CASE("matmul of sizes that are cut into tiles or along the inner size") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(3);
  for (const Shape& size :
       {Shape{307, 211, 101}, Shape{3, 1009, 5}, Shape{11, 100'003, 7}, Shape{300, 307, 500}, Shape{1, 1, 1},
        Shape{2, 20'011, 3}, Shape{401, 3, 503}, Shape{1, 307, 1009}, Shape{1009, 307, 1}}) {
    const Tensor a = randn({size[0], size[1]}, rng, dtype), b = randn({size[1], size[2]}, rng, dtype);
    const double limit = (dtype == f32 ? 1e-6 : 1e-14) * 8 * std::sqrt(static_cast<double>(size[1]));
    INFO(to_string(size));
    const std::vector<double> expected = multiply(a, b);
    CHECK(largest_difference(matmul(a, b).to_vector(), expected) < limit);
    // The same matrices, lying otherwise.
    const Tensor at = transpose(clone(transpose(a))), bt = transpose(clone(transpose(b)));
    CHECK(largest_difference(matmul(at, b).to_vector(), expected) < limit);
    CHECK(largest_difference(matmul(a, bt).to_vector(), expected) < limit);
    CHECK(largest_difference(matmul(at, bt).to_vector(), expected) < limit);
    const Tensor wide = concat({a, full({size[0], 1}, 1e6, dtype)}, 1);
    CHECK(largest_difference(matmul(slice(wide, 1, 0, size[1]), b).to_vector(), expected) < limit);
  }
}

TEST_CASE("matmul of every number of rows and columns that a tile in registers may have, and one more") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(4);
  const std::int64_t inner = GENERATE(1, 5, 131);  // 131: more than a panel holds
  const Tensor a = randn({17, inner}, rng, dtype), b = randn({inner, 49}, rng, dtype);
  const Tensor bt = transpose(clone(transpose(b)));
  const double limit = (dtype == f32 ? 1e-6 : 1e-14) * 8 * std::sqrt(static_cast<double>(inner));
  for (std::int64_t m = 1; m <= a.size(0); ++m) {
    for (std::int64_t n = 1; n <= b.size(1); ++n) {
      INFO(m << " rows and " << n << " columns");
      const Tensor rows = slice(a, 0, 0, m), columns = slice(b, 1, 0, n);
      const std::vector<double> expected = multiply(rows, columns);
      CHECK(largest_difference(matmul(rows, columns).to_vector(), expected) < limit);
      CHECK(largest_difference(matmul(rows, slice(bt, 1, 0, n)).to_vector(), expected) < limit);
      CHECK(largest_difference(matmul(rows, clone(columns)).to_vector(), expected) < limit);
    }
  }
}

TEST_CASE("a row is multiplied to the same bits alone and among others") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(6);
  const Tensor a = randn({29, 131}, rng, dtype), b = randn({131, 53}, rng, dtype);
  const Tensor bt = transpose(clone(transpose(b)));
  for (const Tensor& right : {b, bt}) {
    const Tensor all = matmul(a, right);
    for (std::int64_t i = 0; i < a.size(0); ++i) {
      CHECK(matmul(slice(a, 0, i, i + 1), right).to_vector() == slice(all, 0, i, i + 1).to_vector());
    }
  }
}

TEST_CASE("matmul of matrices whose rows or columns repeat in memory") {
  Rng rng(5);
  const Tensor row = randn({1, 5}, rng, f64), column = randn({5, 1}, rng, f64), one = randn({1, 1}, rng, f64);
  for (const Tensor& a :
       {broadcast_to(row, {3, 5}), broadcast_to(slice(column, 0, 0, 3), {3, 5}), broadcast_to(one, {3, 5})}) {
    for (const Tensor& b :
         {broadcast_to(column, {5, 7}), broadcast_to(one, {5, 7}), broadcast_to(one, {5, 1})}) {
      CHECK(largest_difference(matmul(a, b).to_vector(), multiply(a, b)) < 1e-13);
      CHECK(largest_difference(matmul(transpose(b), transpose(a)).to_vector(),
                               multiply(transpose(b), transpose(a))) < 1e-13);
    }
  }
}

TEST_CASE("transposed views are multiplied without a copy") {
  const Tensor a = ones({500, 500}), b = ones({500, 500});
  reset_peak_memory();
  const std::int64_t before = memory().live_bytes;
  const Tensor c = matmul(transpose(a), transpose(b));
  CHECK(memory().peak_bytes - before < 1'100'000);
  CHECK(c.at({499, 0}) == 500);
}

TEST_CASE("an empty inner size gives zeros") {
  const Dtype dtype = GENERATE(f32, f64);
  CHECK(matmul(zeros({3, 0}, dtype), zeros({0, 5}, dtype)).to_vector() == std::vector<double>(15, 0));
  CHECK(matmul(zeros({0}, dtype), zeros({0}, dtype)).item() == 0);
  CHECK(linear(zeros({2, 3, 0}, dtype), zeros({0, 5}, dtype), ones({5}, dtype)).to_vector() ==
        std::vector<double>(30, 1));
}

TEST_CASE("NaN and infinity are not lost in a product with zero") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(matmul(tensor({0, 1}, f64), tensor({infinity, 1}, f64)).item()));
}
