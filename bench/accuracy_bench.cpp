// Prints how accurate elementwise functions are, as the tables in docs/accuracy.md.
//
//   accuracy_bench [STEP]
//
// f32 is measured at every STEP-th of its numbers: at every 1,009th by default; all of them take hours. f64
// is measured at 10,000,000 numbers of all magnitudes if STEP is 1, and else at 100,000.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "cases/accuracy.h"
#include "fovea/fovea.h"

namespace {

using namespace fovea;

void print_errors(std::int64_t step) {
  const std::int64_t f64_numbers = step == 1 ? 10'000'000 : 100'000;
  fmt::print("| function | f32: worst | mean | f64: worst | mean |\n|---|---|---|---|---|\n");
  for (const ElementwiseFunction& function : elementwise_functions()) {
    const Accuracy narrow = accuracy_in_f32(function, step), wide = accuracy_in_f64(function, f64_numbers);
    fmt::print("| {} | {:.2f} | {:+.3f} | {:.2f} | {:+.3f} |\n", function.name, narrow.worst, narrow.mean,
               wide.worst, wide.mean);
    std::fflush(stdout);
  }
}

void print_special_values() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor points =
      tensor({-infinity, -1e-40, -0.0, 0, 1e-40, infinity, std::numeric_limits<double>::quiet_NaN()});
  fmt::print(
      "\n| value; slope at | -inf | -1e-40 | -0 | 0 | 1e-40 | inf | NaN "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const ElementwiseFunction& function : elementwise_functions()) {
    Tensor x = clone(points).set_requires_grad();
    const Tensor y = function.of(x);
    const Tensor slope = grad({y}, {x}, {.gradients = {ones(x.shape())}})[0];
    std::string row = fmt::format("| {} |", function.name);
    for (std::int64_t i = 0; i < points.numel(); ++i) {
      // A NaN is printed without its sign, which has no meaning.
      const auto text = [](double value) { return std::isnan(value) ? "nan" : fmt::format("{:.3g}", value); };
      row += fmt::format(" {}; {} |", text(y.at({i})), text(slope.at({i})));
    }
    fmt::print("{}\n", row);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t step = argc > 1 ? std::atoll(argv[1]) : 1009;
  if (step < 1) {
    fmt::print(stderr, "accuracy_bench: STEP is {}: it must be a whole number of 1 or more\n", argv[1]);
    return 2;
  }
  print_errors(step);
  print_special_values();
}
