#include "gradcheck/f32_drift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "autograd/kernels/strided.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "gradcheck/comparison.h"
#include "gradcheck/constants.h"

namespace fovea::detail {
namespace {

using constants::epsilon;
using constants::f32_rounding;

using Values = std::vector<double>;

// The value of the function, named "output", or the gradient of a tensor.
struct Result {
  std::string name;
  Shape shape;
  Values values;
};

struct Results {
  std::vector<Result> all;
  double magnitude = 0;          // sum |w f|
  double largest_cotangent = 0;  // |w|
};

Results results_of(const Subject& subject, std::uint64_t seed) {
  std::vector<Tensor> targets;
  for (const NamedTensor& named : subject.tensors) {
    targets.push_back(named.tensor);
    targets.back().set_requires_grad();
  }
  const Tensor value = subject.f();
  Rng rng(seed);
  const Tensor cotangent = to(to(random_weights(value.shape(), rng), f32), value.dtype());
  const std::vector<Tensor> gradients =
      grad({value}, targets, {.gradients = {cotangent}, .allow_unused = true});

  Results results;
  results.all.push_back({"output", value.shape(), value.to_vector()});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    results.all.push_back({subject.tensors[i].name, gradients[i].shape(), gradients[i].to_vector()});
  }
  for (const double v : (value * cotangent).to_vector()) results.magnitude += std::abs(v);
  results.largest_cotangent = largest_of(cotangent.to_vector());
  return results;
}

// Writes numbers into a tensor of any layout, in row-major order.
void assign(Tensor x, std::span<const double> values) {
  double* data = x.mutable_data<double>();
  auto value = values.begin();
  kernels::for_each_offset(x.shape(), x.strides(), [&](std::int64_t offset) { data[offset] = *value++; });
}

// How far each result moves at most when the inputs are moved by their f32 rounding.
Values sensitivities(const Subject& wide, const std::vector<Values>& inputs, const Results& exact,
                     std::uint64_t seed) {
  Values largest(exact.all.size(), 0);
  Rng rng(seed);
  for (int k = 0; k < constants::f32_perturbations; ++k) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Values moved = inputs[i];
      for (double& v : moved) {
        const double sign = rng.uniform_int(2) ? 1 : -1;
        v *= 1 + f32_rounding * sign * (0.5 + rng.uniform() / 2);
      }
      assign(wide.tensors[i].tensor, moved);
    }
    const Results near = results_of(wide, seed);
    for (std::size_t i = 0; i < largest.size(); ++i) {
      for (std::size_t j = 0; j < near.all[i].values.size(); ++j) {
        const double move = std::abs(near.all[i].values[j] - exact.all[i].values[j]);
        if (std::isfinite(move)) largest[i] = std::max(largest[i], move);
      }
    }
  }
  return largest;
}

// Results that are NaN in f64, or too large for f32, cannot be compared and agree.
bool agrees(double narrow, double exact, double limit) {
  if (std::isnan(exact) || std::abs(exact) > std::numeric_limits<float>::max()) return true;
  return std::abs(narrow - exact) <= limit;
}

// How far the elements of a result may be off in f32.
struct DriftLimits {
  double of_element = 0;
  // The gradient of a function whose terms all cancel is 0 in f64 to within this rounding, and in f32 may be
  // the rounding of those terms.
  double rounding_of_zero = 0, of_zero = 0;
};

// Limits for result `i`, which moves by `move` when the inputs are moved by their rounding. Result 0 is the
// value.
DriftLimits limits_of(const Results& exact, std::size_t i, double move, double largest_input,
                      const GradcheckOptions& options) {
  DriftLimits limits;
  limits.of_element = options.f32_roundings * (f32_rounding * largest_of(exact.all[i].values) + move);
  if (i == 0) return limits;
  limits.of_element += constants::f32_cotangent_roundings * f32_rounding * exact.largest_cotangent;
  const double per_unit = exact.magnitude * (1 / std::max(1.0, largest_input));
  limits.rounding_of_zero = constants::zero_roundings * epsilon * per_unit;
  limits.of_zero = options.f32_roundings * f32_rounding * per_unit;
  return limits;
}

void report_drift(const Result& narrow, const Results& exact, std::size_t i, const DriftLimits& limits,
                  GradcheckReport& report) {
  const auto& [name, shape, expected] = exact.all[i];
  const double largest = largest_of(expected);
  for (std::size_t j = 0; j < expected.size(); ++j) {
    const double actual = narrow.values[j];
    const bool is_zero = std::abs(expected[j]) <= limits.rounding_of_zero;
    const double allowed = std::max(limits.of_element, is_zero ? limits.of_zero : 0);
    if (agrees(actual, expected[j], allowed)) continue;
    report.failures.push_back({.order = i == 0 ? 0 : 1,
                               .input = name,
                               .index = position_of(static_cast<std::int64_t>(j), shape),
                               .analytic = actual,
                               .numeric = expected[j],
                               .error = allowed,
                               .verdict = Verdict::f32_drift,
                               .relative = std::abs(actual - expected[j]) / largest});
  }
}

}  // namespace

void compare_f32(const MakeSubject& make, const GradcheckOptions& options, GradcheckReport& report) {
  const Subject wide = make(f64);
  Results narrow;
  std::vector<Values> inputs;
  try {
    const Subject subject = make(f32);
    for (const NamedTensor& named : subject.tensors) inputs.push_back(named.tensor.to_vector());
    narrow = results_of(subject, options.seed);
  } catch (const DtypeError& e) {
    report.f32 = e.what();
    return;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) assign(wide.tensors[i].tensor, inputs[i]);
  const Results exact = results_of(wide, options.seed);
  const Values moves = sensitivities(wide, inputs, exact, options.seed);
  report.evaluations += 2 + constants::f32_perturbations;

  for (std::size_t i = 0; i < exact.all.size(); ++i) {
    const double largest_input = i == 0 ? 0 : largest_of(inputs[i - 1]);
    report_drift(narrow.all[i], exact, i, limits_of(exact, i, moves[i], largest_input, options), report);
  }
}

}  // namespace fovea::detail
