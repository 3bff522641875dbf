#include <cmath>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/state.h"
#include "fovea/train/optimizers/optimizer.h"
#include "tests/support/catch.h"

namespace fovea {
namespace {

using Names = std::vector<std::string>;

// The iteration applied to one singular value.
double iterated(double x, int steps) {
  for (int i = 0; i < steps; ++i) x = 3.4445 * x - 4.7750 * std::pow(x, 3) + 2.0315 * std::pow(x, 5);
  return x;
}

// A random matrix with orthonormal columns, by the Gram-Schmidt process.
std::vector<std::vector<double>> orthonormal(std::size_t columns, std::size_t rows, Rng& rng) {
  std::vector<std::vector<double>> q(columns, std::vector<double>(rows));
  for (std::size_t j = 0; j < columns; ++j) {
    for (double& x : q[j]) x = rng.normal();
    const auto dot = [&](const auto& a, const auto& b) {
      double total = 0;
      for (std::size_t i = 0; i < rows; ++i) total += a[i] * b[i];
      return total;
    };
    for (int twice = 0; twice < 2; ++twice) {
      for (std::size_t k = 0; k < j; ++k) {
        const double along = dot(q[j], q[k]);
        for (std::size_t i = 0; i < rows; ++i) q[j][i] -= along * q[k][i];
      }
    }
    const double norm = std::sqrt(dot(q[j], q[j]));
    for (double& x : q[j]) x /= norm;
  }
  return q;
}

TEST_CASE("orthogonalized: keeps singular vectors, and applies the polynomial to singular values",
          "[train]") {
  const bool is_tall = GENERATE(false, true);
  const int steps = GENERATE(1, 5);
  constexpr std::size_t rank = 3, rows = 5, columns = 11;
  const std::vector<double> values{3, 0.5, 0.04};
  const double norm = std::sqrt(9 + 0.25 + 0.0016);
  Rng rng(1);
  const auto U = orthonormal(rank, rows, rng), V = orthonormal(rank, columns, rng);
  std::vector<double> G(rows * columns), expected(rows * columns);
  for (std::size_t r = 0; r < rank; ++r) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        G[i * columns + j] += values[r] * U[r][i] * V[r][j];
        expected[i * columns + j] += iterated(values[r] / norm, steps) * U[r][i] * V[r][j];
      }
    }
  }
  const Tensor matrix = from_values(G, {rows, columns}, f64);
  const Tensor right = from_values(expected, {rows, columns}, f64);
  const Tensor found = orthogonalized(is_tall ? transpose(matrix) : matrix, steps);
  CHECK(max(abs((is_tall ? transpose(found) : found) - right)).item() < 1e-12);
  // The norm of the argument does not matter, even where its square would overflow.
  CHECK(max(abs(orthogonalized(1e200 * matrix, steps) - right)).item() < 1e-12);
  CHECK(max(abs(orthogonalized(1e-200 * matrix, steps) - right)).item() < 1e-12);
  CHECK(max(abs(to(orthogonalized(to(matrix, f32), steps), f64) - right)).item() < 1e-4);
}

TEST_CASE("orthogonalized: zeros, empty matrices and other ranks", "[train]") {
  CHECK(orthogonalized(zeros({3, 5})).to_vector() == std::vector<double>(15, 0.0));
  CHECK(orthogonalized(zeros({0, 5})).shape() == Shape{0, 5});
  CHECK_THROWS_WITH(orthogonalized(ones({3})),
                    ContainsSubstring("[orthogonalized]") && ContainsSubstring("(3,)"));
  CHECK_FALSE(orthogonalized(parameter(ones({2, 3}))).requires_grad());
}

TEST_CASE("Muon: two steps follow the formula for momentum, scale and decay", "[train]") {
  const Dtype dtype = GENERATE(f32, f64);
  const bool nesterov = GENERATE(false, true);
  const Shape shape = GENERATE(Shape{3, 7}, Shape{7, 3});
  const double scale = shape[0] == 3 ? std::sqrt(7.0 / 3) : 1;
  Rng rng(1);
  const Tensor W = parameter(randn(shape, rng, dtype));
  Muon muon({{"W", W}}, {.learning_rate = 0.1, .momentum = 0.5, .nesterov = nesterov, .weight_decay = 0.2});
  Tensor expected = clone(W.detach()), u = zeros(shape, dtype);
  for (int step = 0; step < 2; ++step) {
    const Tensor g = randn(shape, rng, dtype);
    W.set_grad(g);
    muon.step();
    u = 0.5 * u + g;
    expected = (1 - 0.1 * 0.2) * expected - 0.1 * scale * orthogonalized(nesterov ? g + 0.5 * u : u);
  }
  CHECK(max(abs(W.detach() - expected)).item() < (dtype == f32 ? 1e-5 : 1e-13));
}

TEST_CASE("Muon: parameters that are not selected as matrices are trained as by AdamW", "[train]") {
  Rng rng(1);
  const Tensor table = parameter(randn({7, 3}, rng)), b = parameter(randn({5}, rng));
  const Tensor table_twin = parameter(clone(table.detach())), b_twin = parameter(clone(b.detach()));
  const Tensor W = parameter(randn({3, 5}, rng));
  Muon muon(
      {{"table", table}, {"W", W}, {"b", b}},
      {.learning_rate = 0.1, .adam_lr_scale = 0.5, .weight_decay = 0.2, .matrices = [](const NamedTensor& p) {
         return is_matrix(p) && p.name != "table";
       }});
  AdamW adamw({{"table", table_twin}, {"b", b_twin}},
              {.learning_rate = 0.05, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.2});
  Names names;
  for (const NamedTensor& named : state(muon).tensors) names.push_back(named.name);
  CHECK(names == Names{"table.m", "b.m", "table.v", "b.v", "table.updates", "b.updates", "W.momentum"});
  for (int step = 0; step < 3; ++step) {
    table.set_grad(randn({7, 3}, rng));
    table_twin.set_grad(table.grad());
    b.set_grad(randn({5}, rng));
    b_twin.set_grad(b.grad());
    muon.step();
    adamw.step();
  }
  CHECK(table.to_vector() == table_twin.to_vector());
  CHECK(b.to_vector() == b_twin.to_vector());
}

TEST_CASE("Muon: the same bits for any number of threads", "[train]") {
  const int before = threads();
  std::vector<std::vector<double>> results;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    Rng rng(1);
    const Tensor W = parameter(randn({131, 257}, rng));
    Muon muon({{"W", W}});
    for (int step = 0; step < 2; ++step) {
      W.set_grad(randn({131, 257}, rng));
      muon.step();
    }
    results.push_back(W.to_vector());
  }
  set_threads(before);
  CHECK(results[1] == results[0]);
  CHECK(results[2] == results[0]);
}

}  // namespace
}  // namespace fovea
