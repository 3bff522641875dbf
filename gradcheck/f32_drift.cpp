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

namespace fovea::detail {
namespace {

constexpr double f32_rounding = 0x1p-24;
constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr int perturbations = 4;

using Values = std::vector<double>;

// The value, called "output", or the gradient of a tensor.
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

// How far each result moves at most when the inputs are moved by f32's rounding.
Values sensitivities(const Subject& wide, const std::vector<Values>& inputs, const Results& exact,
                     std::uint64_t seed) {
  Values largest(exact.all.size(), 0);
  Rng rng(seed);
  for (int k = 0; k < perturbations; ++k) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Values moved = inputs[i];
      for (double& v : moved)
        v *= 1 + f32_rounding * (rng.uniform_int(2) ? 1 : -1) * (0.5 + rng.uniform() / 2);
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

// Also for what f32 can't hold, or is not finite in f64 either.
bool agrees(double narrow, double exact, double limit) {
  if (std::isnan(exact) || std::abs(exact) > std::numeric_limits<float>::max()) return true;
  return std::abs(narrow - exact) <= limit;
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
  report.evaluations += 2 + perturbations;

  for (std::size_t i = 0; i < exact.all.size(); ++i) {
    const auto& [name, shape, expected] = exact.all[i];
    const double largest = largest_of(expected);
    // Terms of a gradient may be as large as w and cancel: p - 1 in cross-entropy. One that is zero, because
    // all that f has cancels, is left with the rounding of that.
    const double unit = i == 0 ? 0 : 1 / std::max(1.0, largest_of(inputs[i - 1]));
    const double limit = options.f32_roundings * (f32_rounding * largest + moves[i]) +
                         (i == 0 ? 0 : 8 * f32_rounding * exact.largest_cotangent);
    const double per_unit = exact.magnitude * unit;
    for (std::size_t j = 0; j < expected.size(); ++j) {
      const double actual = narrow.all[i].values[j];
      const bool cancels = std::abs(expected[j]) <= 1024 * epsilon * per_unit;
      const double allowed = std::max(limit, cancels ? options.f32_roundings * f32_rounding * per_unit : 0);
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
}

}  // namespace fovea::detail
