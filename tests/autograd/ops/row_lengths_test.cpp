#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops/reference.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

// Kernels work in blocks, several at a time, and have ends of their own. Here every op with a kernel meets
// every length of a row up to several blocks, against loops in double or against its reference form.

using namespace fovea;

namespace {

std::vector<std::int64_t> lengths() {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= 70; ++n) all.push_back(n);
  for (const std::int64_t n : {127, 128, 129, 144, 1000, 1031}) all.push_back(n);
  return all;
}

// The largest |actual - expected| / max(1, |expected|); infinite if shapes differ or a NaN appears.
double error_of(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape()) return INFINITY;
  const std::vector<double> a = actual.to_vector(), e = expected.to_vector();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - e[i]) / std::max(1.0, std::abs(e[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

double tolerance(Dtype dtype) { return dtype == f32 ? 4e-6 : 1e-12; }

using Op = std::function<Tensor(const Tensor&)>;

// Value and gradient of two ways to one function.
double difference(const Op& a, const Op& b, const Tensor& x) {
  Tensor leaf = x.detach();
  leaf.set_requires_grad();
  const Tensor y = a(leaf), expected = b(leaf);
  Rng rng(11);
  const Tensor u = randn(y.shape(), rng, y.dtype());
  return std::max(error_of(y, expected), error_of(grad({y}, {leaf}, {.gradients = {u}})[0],
                                                  grad({expected}, {leaf}, {.gradients = {u}})[0]));
}

// x (rows, n) as it is, as the view of a transposed array, and as a piece of a wider one.
std::vector<Tensor> layouts_of(const Tensor& x) {
  const Tensor wide =
      concat({full({x.size(0), 3}, 50, x.dtype()), x, full({x.size(0), 2}, 50, x.dtype())}, 1);
  return {x, transpose(clone(transpose(x))), slice(wide, 1, 3, 3 + x.size(1))};
}

}  // namespace

TEST_CASE("elementwise ops are right for every length") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(3);
  const auto check = [&](const std::string& name, const Op& op, double (*exact)(double), double low,
                         double high) {
    double worst = 0;
    for (const std::int64_t n : lengths()) {
      const Tensor x = uniform({2, n}, rng, low, high, dtype);
      std::vector<double> expected = x.to_vector();
      std::ranges::transform(expected, expected.begin(), exact);
      for (const Tensor& view : layouts_of(x)) {
        worst = std::max(worst, error_of(op(view), from_values(expected, x.shape(), f64)));
      }
    }
    INFO(name);
    CHECK(worst < tolerance(dtype) / 4);
  };
  check(
      "exp", [](const Tensor& x) { return exp(x); }, std::exp, -20, 3);
  check(
      "log", [](const Tensor& x) { return log(x); }, std::log, 0.01, 100);
  check(
      "sqrt", [](const Tensor& x) { return sqrt(x); }, std::sqrt, 0, 100);
  check(
      "tanh", [](const Tensor& x) { return tanh(x); }, std::tanh, -10, 10);
  check(
      "erf", [](const Tensor& x) { return erf(x); }, std::erf, -6, 6);
  check(
      "sigmoid", [](const Tensor& x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); },
      -30, 30);
  check(
      "abs", [](const Tensor& x) { return abs(x); }, std::abs, -5, 5);
  check(
      "affine", [](const Tensor& x) { return 3 * x - 2; }, [](double x) { return 3 * x - 2; }, -5, 5);
  check(
      "mul", [](const Tensor& x) { return x * x; }, [](double x) { return x * x; }, -5, 5);
  check(
      "pow", [](const Tensor& x) { return pow(x, 1.5); }, [](double x) { return std::pow(x, 1.5); }, 0, 5);
  check(
      "relu", [](const Tensor& x) { return relu(x); }, [](double x) { return x > 0 ? x : 0; }, -5, 5);
  check(
      "where", [](const Tensor& x) { return where(x > 1.0, x, -x); }, [](double x) { return x > 1 ? x : -x; },
      -5, 5);
  check(
      "clone", [](const Tensor& x) { return clone(x); }, [](double x) { return x; }, -5, 5);
}

TEST_CASE("elementary functions are right over their whole range") {
  // Relative errors, in roundings: where results are large, small, or barely representable.
  const auto check = [](const Tensor& actual, const std::vector<double>& exact, double rounding,
                        double least) {
    double worst = 0;
    const std::vector<double> a = actual.to_vector();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double error = std::abs(a[i] - exact[i]) / std::max(std::abs(exact[i]), least) / rounding;
      if (!(error <= worst)) worst = error;
    }
    CHECK(worst < 4);
  };
  std::vector<double> x, exps, logs, tanhs;
  for (double v = -87; v < 88; v += 0.137) x.push_back(static_cast<float>(v));
  for (const double v : x) exps.push_back(std::exp(v));
  for (const double v : exps) logs.push_back(std::log(static_cast<float>(v)));
  for (const double v : x) tanhs.push_back(std::tanh(v));
  const Shape shape{static_cast<std::int64_t>(x.size())};
  check(exp(from_values(x, shape, f32)), exps, 0x1p-23, 0x1p-126);
  check(exp(from_values(x, shape, f64)), exps, 0x1p-52, 0);
  check(log(from_values(exps, shape, f32)), logs, 0x1p-23, 0.1);
  check(tanh(from_values(x, shape, f32)), tanhs, 0x1p-23, 0);
  check(tanh(from_values(x, shape, f64)), tanhs, 0x1p-52, 0);
}

TEST_CASE("reductions are right for every length") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(5);
  double sums = 0, means = 0, maxima = 0, logs = 0;
  bool positions = true;
  for (const std::int64_t n : lengths()) {
    for (const std::int64_t columns : {1, 3, 17}) {
      const Tensor x = randn({n, columns}, rng, dtype);
      std::vector<double> total(static_cast<std::size_t>(columns), 0), largest(total.size(), -INFINITY),
          exps = total;
      std::vector<std::int64_t> at(total.size(), 0);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < total.size(); ++j) {
          const double value = x.at({i, static_cast<std::int64_t>(j)});
          total[j] += value;
          exps[j] += std::exp(value);
          if (value > largest[j]) at[j] = i;
          largest[j] = std::max(largest[j], value);
        }
      }
      std::vector<double> mean_of = total, log_of = exps;
      for (double& value : mean_of) value /= static_cast<double>(n);
      for (double& value : log_of) value = std::log(value);
      const auto expected = [&](const std::vector<double>& values) {
        return from_values(values, {columns}, f64);
      };
      // Along either axis, of arrays that lie either way.
      for (const Tensor& view : layouts_of(x)) {
        for (const bool flipped : {false, true}) {
          const Tensor v = flipped ? transpose(view) : view;
          const std::int64_t axis = flipped ? 1 : 0;
          sums = std::max(sums, error_of(sum(v, axis), expected(total)));
          means = std::max(means, error_of(mean(v, axis), expected(mean_of)));
          maxima = std::max(maxima, error_of(max(v, axis), expected(largest)));
          logs = std::max(logs, error_of(logsumexp(v, axis), expected(log_of)));
          const Indices found = argmax(v, axis);
          positions = positions && std::ranges::equal(found.values(), at);
        }
      }
    }
  }
  CHECK(sums < tolerance(dtype));
  CHECK(means < tolerance(dtype));
  CHECK(maxima == 0);
  CHECK(logs < tolerance(dtype));
  CHECK(positions);
}

TEST_CASE("max and argmax find the largest element, and NaN, at every position") {
  const Dtype dtype = GENERATE(f32, f64);
  bool found = true;
  for (const std::int64_t n : {1, 15, 16, 17, 33, 64, 65, 80, 129}) {
    for (std::int64_t place = 0; place < n; ++place) {
      std::vector<double> values(static_cast<std::size_t>(n), -1);
      values[static_cast<std::size_t>(place)] = 2;
      const Tensor x = from_values(values, {n}, dtype);
      found = found && max(x).item() == 2 && argmax(x)[0] == place && softmax(100 * x).at({place}) == 1;
      values[static_cast<std::size_t>(place)] = std::nan("");
      const Tensor y = from_values(values, {n}, dtype);
      found = found && std::isnan(max(y).item()) && std::isnan(sum(y).item()) && argmax(y)[0] == place;
      found = found && std::isnan(softmax(y).at({n - 1})) && std::isnan(log_softmax(y).at({0}));
      found = found && std::isnan(logsumexp(y, 0).item()) && std::isnan(layer_norm(y).at({0}));
    }
  }
  CHECK(found);
}

TEST_CASE("fused ops agree with their reference forms for rows of every length") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(7);
  double softmaxes = 0, log_softmaxes = 0, norms = 0, losses = 0, gelus = 0;
  for (const std::int64_t n : lengths()) {
    const Tensor gain = randn({n}, rng, dtype), bias = randn({n}, rng, dtype);
    const Indices targets{n / 2, n - 1, 0};
    for (const Tensor& x : layouts_of(2 * randn({3, n}, rng, dtype))) {
      const auto differs = [&](const Op& fused, const Op& formula) { return difference(fused, formula, x); };
      softmaxes = std::max(softmaxes, differs([](const Tensor& v) { return softmax(v); },
                                              [](const Tensor& v) { return reference::softmax(v); }));
      log_softmaxes =
          std::max(log_softmaxes, differs([](const Tensor& v) { return log_softmax(v); },
                                          [](const Tensor& v) { return reference::log_softmax(v); }));
      if (n > 2) {
        norms =
            std::max(norms, differs([&](const Tensor& v) { return layer_norm(v, gain, bias); },
                                    [&](const Tensor& v) { return reference::layer_norm(v, gain, bias); }));
      }
      losses = std::max(losses,
                        differs([&](const Tensor& v) { return cross_entropy(v, targets).loss; },
                                [&](const Tensor& v) { return reference::cross_entropy(v, targets).loss; }));
      gelus =
          std::max(gelus, differs([](const Tensor& v) { return gelu(v) + gelu(v, {.tanh = true}) + silu(v); },
                                  [](const Tensor& v) {
                                    return reference::gelu(v) + reference::gelu(v, {.tanh = true}) +
                                           reference::silu(v);
                                  }));
    }
  }
  CHECK(softmaxes < tolerance(dtype));
  CHECK(log_softmaxes < tolerance(dtype));
  CHECK(norms < 10 * tolerance(dtype));
  CHECK(losses < tolerance(dtype));
  CHECK(gelus < tolerance(dtype));
}

TEST_CASE("the gradients of layer_norm's gain and bias add up over any number of rows") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(9);
  for (const std::int64_t rows : {1, 2, 17, 300, 3001}) {
    for (const std::int64_t n : {3, 16, 37}) {
      const Tensor x = randn({rows, n}, rng, dtype), u = randn({rows, n}, rng, dtype);
      Tensor gain = ones({n}, dtype), bias = zeros({n}, dtype);
      gain.set_requires_grad();
      bias.set_requires_grad();
      const std::vector<Tensor> fused = grad({layer_norm(x, gain, bias)}, {gain, bias}, {.gradients = {u}});
      const std::vector<Tensor> formula =
          grad({reference::layer_norm(x, gain, bias)}, {gain, bias}, {.gradients = {u}});
      CHECK(error_of(fused[0], formula[0]) < 10 * tolerance(dtype));
      CHECK(error_of(fused[1], formula[1]) < 10 * tolerance(dtype));
    }
  }
}

TEST_CASE("embedding looks up and adds up rows of every length") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(13);
  const Indices ids{3, 0, 3, 4, 3};
  double worst = 0;
  for (const std::int64_t n : lengths()) {
    Tensor table = randn({5, n}, rng, dtype);
    const Tensor u = randn({5, n}, rng, dtype);
    table.set_requires_grad();
    const Tensor y = embedding(table, ids);
    const Tensor gradient = grad({y}, {table}, {.gradients = {u}})[0];
    std::vector<Tensor> rows, sums(5, zeros({n}, dtype));
    for (std::int64_t i = 0; i < 5; ++i) {
      rows.push_back(select(table.detach(), 0, ids[i]));
      Tensor& sum_of_id = sums[static_cast<std::size_t>(ids[i])];
      sum_of_id = sum_of_id + select(u, 0, i);
    }
    worst = std::max({worst, error_of(y, stack(rows, 0)), error_of(gradient, stack(sums, 0))});
  }
  CHECK(worst < tolerance(dtype));
}
