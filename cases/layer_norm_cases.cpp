#include <cmath>
#include <vector>

#include "autograd/ops/reference.h"
#include "cases/cases.h"

namespace fovea {
namespace {

// Row by row: (x - mean) / sqrt(variance + eps) gain + bias.
Tensor normalize_rows(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  const std::int64_t n = x.size(-1);
  std::vector<double> values = x.to_vector();
  for (auto row = values.begin(); row != values.end(); row += n) {
    double mean = 0, variance = 0;
    for (std::int64_t j = 0; j < n; ++j) mean += row[j] / static_cast<double>(n);
    for (std::int64_t j = 0; j < n; ++j)
      variance += (row[j] - mean) * (row[j] - mean) / static_cast<double>(n);
    for (std::int64_t j = 0; j < n; ++j) {
      row[j] = (row[j] - mean) / std::sqrt(variance + eps) * (gain.defined() ? gain.at({j}) : 1) +
               (bias.defined() ? bias.at({j}) : 0);
    }
  }
  return from_values(values, x.shape(), f64);
}

// So many rows that the sums over them are computed in chunks. Each row is (-1, 1) or (1, -1).
Example many_rows() {
  constexpr std::int64_t rows = 70'001;
  const double spread = std::sqrt(1 + 1e-5);
  std::vector<double> x, value;
  double signs = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const double sign = i % 3 == 0 ? -1 : 1;
    signs += sign;
    x.insert(x.end(), {-sign, sign});
    value.insert(value.end(), {-2 * sign / spread + 5, 3 * sign / spread + 7});
  }
  return {.name = "many rows",
          .inputs = {{"x", from_values(x, {rows, 2}, f64)},
                     {"gain", tensor({2, 3}, f64)},
                     {"bias", tensor({5, 7}, f64)}},
          .value = value,
          .gradients = {{"gain", {-signs / spread, signs / spread}},
                        {"bias", {static_cast<double>(rows), static_cast<double>(rows)}}},
          .of = [](const Inputs& in) { return layer_norm(in["x"], in["gain"], in["bias"]); }};
}

void add_layer_norm_rows(Cases& cases) {
  const auto row = [&](const std::string& name, const Shape& shape, bool gain, bool bias, double eps) {
    cases.add(name, [=](Case& c) {
      c.input("x", shape);
      const Shape channels{shape.back()};
      if (gain) c.input("gain", channels, positive);
      if (bias) c.input("bias", channels);
      c.not_empty = {shape.back()};
      const auto with = [=](auto f) {
        return [=](const Inputs& in) {
          return f(in["x"], gain ? in["gain"] : Tensor(), bias ? in["bias"] : Tensor(), eps);
        };
      };
      c.value = with([](const auto&... arguments) { return layer_norm(arguments...); });
      c.oracle = with(normalize_rows);
      c.reference = with([](const auto&... arguments) { return reference::layer_norm(arguments...); });
      c.kernel = "layer_norm";
      c.backward_kernel = "layer_norm_backward";
      c.refuses<ValueError>("a negative eps", "[layer_norm]",
                            [](const Inputs& in) { return layer_norm(in["x"], {}, {}, -1e-5); });
      c.refuses<ShapeError>("a gain of the wrong size", "[layer_norm]", [](const Inputs&) {
        return layer_norm(zeros({3, 5}), zeros({3}));
      });
      c.refuses<ShapeError>("a bias of the wrong size", "[layer_norm]", [](const Inputs&) {
        return layer_norm(zeros({3, 5}), {}, zeros({3}));
      });
      c.refuses<ShapeError>("a scalar", "[layer_norm]", [](const Inputs&) { return layer_norm(scalar(1)); });
    });
  };
  row("layer_norm", {2, 3, 5}, true, true, 0.01);
  row("layer_norm, without gain and bias", {2, 3, 5}, false, false, 0.01);
  row("layer_norm, gain only", {3, 7}, true, false, 0.01);
  row("layer_norm, bias only", {3, 7}, false, true, 0.01);
  row("layer_norm, of a vector, large eps", {7}, true, true, 0.5);
  row("layer_norm, long rows", {2, 37}, true, true, 0.01);
}

void add_layer_norm_values(Cases& cases) {
  cases.add("layer_norm, known values", [](Case& c) {
    c.input("x", {3, 7});
    c.not_empty = {7};
    c.f32_roundings = 128;  // in a constant row everything is multiplied by 1 / sqrt(1e-5) = 316
    c.value = [](const Inputs& in) { return layer_norm(in["x"]); };
    c.oracle = [](const Inputs& in) { return normalize_rows(in["x"], {}, {}, 1e-5); };
    const double spread = std::sqrt(1.25 + 1e-5);
    c.example({.name = "a small spread far from 0",
               .inputs = {{"x", tensor({40000, 40001, 40002, 40003}, f64)}},
               .value = {-1.5 / spread, -0.5 / spread, 0.5 / spread, 1.5 / spread},
               .cotangent = {1, 1, 1, 1}});
    c.example({.name = "a constant row", .inputs = {{"x", tensor({3, 3, 3}, f64)}}, .value = {0, 0, 0}});
    c.example(many_rows());
  });
}

}  // namespace

void add_layer_norm_cases(Cases& cases) {
  add_layer_norm_rows(cases);
  add_layer_norm_values(cases);
}

}  // namespace fovea
