#include <cmath>
#include <vector>

#include "autograd/ops/reference.h"
#include "cases/cases.h"

namespace fovea {
namespace {

// Row by row: x / sqrt(mean of squares + eps) gain.
Tensor scale_rows(const Tensor& x, const Tensor& gain, double eps) {
  const std::int64_t n = x.size(-1);
  std::vector<double> values = x.to_vector();
  for (auto row = values.begin(); row != values.end(); row += n) {
    double squares = 0;
    for (std::int64_t j = 0; j < n; ++j) squares += row[j] * row[j];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::int64_t j = 0; j < n; ++j) row[j] *= scale * (gain.defined() ? gain.at({j}) : 1);
  }
  return from_values(values, x.shape(), f64);
}

void add_rms_norm_rows(Cases& cases) {
  const auto row = [&](const std::string& name, const Shape& shape, bool gain, double eps) {
    cases.add(name, [=](Case& c) {
      c.input("x", shape);
      if (gain) c.input("gain", {shape.back()}, positive);
      c.not_empty = {shape.back()};
      const auto with = [=](auto f) {
        return [=](const Inputs& in) { return f(in["x"], gain ? in["gain"] : Tensor(), eps); };
      };
      c.value = with([](const auto&... arguments) { return rms_norm(arguments...); });
      c.oracle = with(scale_rows);
      c.reference = with([](const auto&... arguments) { return reference::rms_norm(arguments...); });
      c.kernel = "rms_norm";
      c.backward_kernel = "rms_norm_backward";
      c.refuses<ValueError>("a negative eps", "[rms_norm]",
                            [](const Inputs& in) { return rms_norm(in["x"], {}, -1e-5); });
      c.refuses<ShapeError>("a gain of the wrong size", "[rms_norm]", [](const Inputs&) {
        return rms_norm(zeros({3, 5}), zeros({3}));
      });
      c.refuses<ShapeError>("a scalar", "[rms_norm]", [](const Inputs&) { return rms_norm(scalar(1)); });
    });
  };
  row("rms_norm", {2, 3, 5}, true, 0.01);
  row("rms_norm, without gain", {2, 3, 5}, false, 0.01);
  row("rms_norm, of a vector, large eps", {7}, true, 0.5);
  row("rms_norm, long rows", {2, 37}, true, 0.01);
}

void add_rms_norm_values(Cases& cases) {
  cases.add("rms_norm, known values", [](Case& c) {
    // The inputs are not much larger than sqrt(eps). A row of equal, larger numbers would be normalised to
    // their sign, whose gradient is the remainder of terms that cancel.
    c.input("x", {3, 7}, {-0.02, 0.02});
    c.not_empty = {7};
    c.value = [](const Inputs& in) { return rms_norm(in["x"]); };
    c.oracle = [](const Inputs& in) { return scale_rows(in["x"], {}, 1e-5); };
    const double size = std::sqrt(12.5 + 1e-5);
    c.example({.name = "3 and 4", .inputs = {{"x", tensor({3, 4}, f64)}}, .value = {3 / size, 4 / size}});
    c.example({.name = "a row of zeros",
               .inputs = {{"x", tensor({0, 0, 0}, f64)}},
               .value = {0, 0, 0},
               .gradients = {{"x", {1 / std::sqrt(1e-5), 1 / std::sqrt(1e-5), 1 / std::sqrt(1e-5)}}}});
  });
}

}  // namespace

void add_rms_norm_cases(Cases& cases) {
  add_rms_norm_rows(cases);
  add_rms_norm_values(cases);
}

}  // namespace fovea
