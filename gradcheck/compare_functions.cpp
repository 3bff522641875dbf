#include <cmath>
#include <utility>

#include "autograd/graph/thread_modes.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/gradcheck.h"
#include "gradcheck/arguments.h"
#include "gradcheck/comparison.h"
#include "gradcheck/constants.h"
#include "gradcheck/report.h"

namespace fovea {
namespace {

// At order 1, the output of f and the gradient of every input. At order 2, the gradients of the gradients,
// which are contracted with random vectors.
std::vector<Tensor> derivatives(const NamedFunction& f, const Inputs& inputs, int order, std::uint64_t seed) {
  std::vector<Tensor> targets;
  for (const auto& [name, x] : inputs) targets.push_back(x);
  Rng rng(seed);
  const Tensor y = f(inputs);
  std::vector<Tensor> gradients = grad({y}, targets,
                                       {.gradients = {detail::random_weights(y.shape(), rng)},
                                        .create_graph = order == 2,
                                        .allow_unused = true});
  if (order == 1) {
    gradients.insert(gradients.begin(), y);
    return gradients;
  }
  std::vector<Tensor> weights;
  weights.reserve(gradients.size());
  for (const Tensor& g : gradients) weights.push_back(detail::random_weights(g.shape(), rng));
  return grad(gradients, targets, {.gradients = weights, .allow_unused = true});
}

void compare_derivatives(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                         const std::vector<std::string>& names, int order, double roundings,
                         GradcheckReport& report) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<double> a = actual[i].to_vector(), e = expected[i].to_vector();
    TensorCheck tensor{.order = order, .input = names[i], .shape = expected[i].shape()};
    tensor.elements = static_cast<std::int64_t>(e.size());
    tensor.largest = detail::largest_of(e);
    const double limit = roundings * detail::constants::epsilon * tensor.largest;
    for (std::size_t k = 0; k < e.size(); ++k) {
      ElementCheck element{order, names[i], detail::position_of(static_cast<std::int64_t>(k), tensor.shape),
                           a[k],  e[k],     limit};
      if (a[k] == e[k]) continue;
      element.relative = std::abs(a[k] - e[k]) / tensor.largest;
      if (!(element.relative <= tensor.worst.relative)) tensor.worst = element;
      if (std::abs(a[k] - e[k]) <= limit) continue;
      element.verdict = std::isfinite(a[k]) && std::isfinite(e[k]) ? Verdict::wrong : Verdict::non_finite;
      report.failures.push_back(element);
    }
    report.elements += tensor.elements;
    report.tensors.push_back(std::move(tensor));
  }
}

}  // namespace

GradcheckReport compare_functions(const NamedFunction& f, const NamedFunction& expected, const Inputs& inputs,
                                  const GradcheckOptions& options, double roundings) {
  const detail::WithGraph scope;
  const detail::Clock::time_point start = detail::Clock::now();
  std::vector<NamedTensor> copies;
  std::vector<std::string> names{"output"};
  for (const auto& [name, x] : inputs) {
    Tensor copy = from_values(x.to_vector(), x.shape(), f64);
    copies.push_back({name, copy.set_requires_grad()});
    names.push_back(name);
  }
  detail::check_arguments(copies, options);
  GradcheckReport report = detail::new_report(options);
  for (int order = 1; order <= options.order; ++order) {
    const Inputs leaves(copies);
    compare_derivatives(derivatives(f, leaves, order, options.seed),
                        derivatives(expected, leaves, order, options.seed), names, order, roundings, report);
    report.evaluations += 2;
    names.erase(names.begin());
  }
  detail::finish(report, start);
  return report;
}

}  // namespace fovea
