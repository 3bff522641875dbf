#include "fovea/gradcheck/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "autograd/base/fail.h"
#include "autograd/graph/thread_modes.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "gradcheck/arguments.h"
#include "gradcheck/comparison.h"
#include "gradcheck/constants.h"
#include "gradcheck/f32_drift.h"
#include "gradcheck/report.h"

namespace fovea {

using detail::check_arguments;
using detail::Clock;
using detail::Comparison;
using detail::Excluded;
using detail::finish;
using detail::first_overlap;
using detail::new_report;
using detail::Subject;

namespace {

// Makes tensors require a gradient while it lives, and puts them back as they were.
class Leaves {
 public:
  explicit Leaves(const std::vector<NamedTensor>& tensors) {
    for (const NamedTensor& named : tensors) {
      if (named.tensor.requires_grad()) continue;
      made_.push_back(named.tensor);
      made_.back().set_requires_grad();
    }
  }
  ~Leaves() {
    for (Tensor& x : made_) x.set_requires_grad(false);
  }
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;

 private:
  std::vector<Tensor> made_;
};

std::vector<Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<Tensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& n : named) tensors.push_back(n.tensor);
  return tensors;
}

// Runs a comparison with random vectors. They may leave so little of a derivative that rounding hides it, as
// where the cotangent of a log_softmax sums to almost zero. So where every failure is inconclusive, other
// vectors are drawn. After any other failure they are not: what is wrong for one draw is wrong.
std::vector<double> run_drawn(const std::function<Comparison(Rng&)>& draw, const GradcheckOptions& options,
                              const Excluded& excluded, Rng& rng, GradcheckReport& report) {
  for (int left = detail::constants::most_draws;; --left) {
    const Comparison comparison = draw(rng);
    GradcheckReport found = report;
    std::vector<double> noise = comparison.run(options, excluded, rng, found);
    const auto failures = std::span(found.failures).subspan(report.failures.size());
    const bool hidden = !failures.empty() && std::ranges::all_of(failures, [](const ElementCheck& element) {
      return element.verdict == Verdict::inconclusive;
    });
    if (!hidden || left == 1) {
      report = std::move(found);
      return noise;
    }
    report.evaluations = found.evaluations;
  }
}

// Returns the noise of every element of the gradients.
std::vector<double> check_first_order(const std::function<Tensor()>& f,
                                      const std::vector<NamedTensor>& tensors,
                                      const GradcheckOptions& options, const Excluded& excluded,
                                      GradcheckReport& report) {
  Rng rng(options.seed);
  const Shape shape = f().shape();
  Comparison comparison{
      .order = 1, .inputs = tensors, .values = [&](bool) { return std::vector<Tensor>{f()}; }};
  if (!options.jacobian) {
    const auto draw = [&](Rng& from) {
      comparison.weights = {detail::random_weights(shape, from)};
      return comparison;
    };
    return run_drawn(draw, options, excluded, rng, report);
  }
  std::vector<double> noise;
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    std::vector<double> one(static_cast<std::size_t>(numel(shape)), 0);
    one[static_cast<std::size_t>(i)] = 1;
    comparison.weights = {from_values(one, shape, f64)};
    comparison.output = detail::position_of(i, shape);
    noise = comparison.run(options, excluded, rng, report);
  }
  return noise;
}

// In Jacobian mode there is a TensorCheck for each tensor and output element. Joins those of one tensor,
// which is vacuous only if it is so for every output element.
void join_outputs(GradcheckReport& report) {
  std::vector<TensorCheck> joined;
  for (const TensorCheck& tensor : report.tensors) {
    const auto found = std::ranges::find(joined, tensor.input, &TensorCheck::input);
    if (found == joined.end()) {
      joined.push_back(tensor);
      continue;
    }
    found->elements += tensor.elements;
    found->largest = std::max(found->largest, tensor.largest);
    found->vacuous = found->vacuous && tensor.vacuous;
    if (tensor.worst.relative > found->worst.relative) found->worst = tensor.worst;
  }
  report.tensors = std::move(joined);
}

// Checks the gradient as a function of the inputs and of the cotangent, which is an input here too.
void check_second_order(const std::function<Tensor()>& f, const std::vector<NamedTensor>& tensors,
                        const std::vector<double>& noise, const GradcheckOptions& options,
                        const Excluded& excluded, GradcheckReport& report) {
  Rng rng(options.seed + 1);
  const Shape shape = f().shape();
  const std::vector<Tensor> targets = tensors_of(tensors);
  const auto draw = [&](Rng& from) {
    Tensor cotangent = detail::random_weights(shape, from);
    cotangent.set_requires_grad();
    // The values whose differences are taken come from the kernels that training uses, without a graph.
    const auto gradients = [&, cotangent](bool differentiable) {
      return grad({f()}, targets,
                  {.gradients = {cotangent}, .create_graph = differentiable, .allow_unused = true});
    };
    Comparison comparison{.order = 2, .inputs = tensors, .values = gradients, .noise = noise};
    comparison.inputs.push_back({"cotangent", cotangent});
    for (const Tensor& target : targets)
      comparison.weights.push_back(detail::random_weights(target.shape(), from));
    return comparison;
  };

  const std::size_t first = report.tensors.size();
  run_drawn(draw, options, excluded, rng, report);
  // The second derivative in one input may well be zero, as for a linear function. But if the gradient
  // depends on no input at all, there was nothing to check.
  const auto second = std::span(report.tensors).subspan(first);
  const bool all_vacuous = std::ranges::all_of(second, &TensorCheck::vacuous);
  for (TensorCheck& tensor : second) tensor.vacuous = all_vacuous && tensor.input != "cotangent";
}

void check_in_place(const Subject& subject, const GradcheckOptions& options, GradcheckReport& report) {
  const Excluded excluded(options.exclude, subject.tensors);
  const Leaves leaves(subject.tensors);
  const std::vector<double> noise = check_first_order(subject.f, subject.tensors, options, excluded, report);
  if (options.jacobian) join_outputs(report);
  if (options.order == 2 && report.not_deterministic.empty()) {
    check_second_order(subject.f, subject.tensors, noise, options, excluded, report);
  }
}

}  // namespace

GradcheckReport gradcheck_in_place(const std::function<Tensor()>& f, const std::vector<NamedTensor>& tensors,
                                   const GradcheckOptions& options) {
  const detail::WithGraph scope;
  const Clock::time_point start = Clock::now();
  check_arguments(tensors, options);
  for (const auto& [name, x] : tensors) {
    if (x.dtype() == f64) continue;
    fail<DtypeError>("[gradcheck] '{}' is {}: gradients are checked in f64, so convert it or its layer first",
                     name, name_of(x.dtype()));
  }
  GradcheckReport report = new_report(options);
  report.aliased = first_overlap(tensors);
  if (report.aliased.empty()) check_in_place({f, tensors}, options, report);
  finish(report, start);
  return report;
}

GradcheckReport detail::gradcheck_subject(const MakeSubject& make, const GradcheckOptions& options) {
  const WithGraph scope;
  const Clock::time_point start = Clock::now();
  const Subject subject = make(f64);
  check_arguments(subject.tensors, options);
  GradcheckReport report = new_report(options);
  check_in_place(subject, options, report);
  if (options.compare_f32) compare_f32(make, options, report);
  finish(report, start);
  return report;
}

GradcheckReport gradcheck(const NamedFunction& f, const Inputs& inputs, const GradcheckOptions& options) {
  const std::vector<NamedTensor> given(inputs.begin(), inputs.end());
  GradcheckReport report = new_report(options);
  report.aliased = first_overlap(given);
  if (!report.aliased.empty()) return report;
  return detail::gradcheck_subject(
      [&](Dtype dtype) {
        std::vector<NamedTensor> copies;
        copies.reserve(given.size());
        for (const auto& [name, x] : given) {
          copies.push_back({name, from_values(x.to_vector(), x.shape(), dtype)});
        }
        return Subject{[&f, in = Inputs(copies)] { return f(in); }, copies};
      },
      options);
}

GradcheckReport gradcheck(const Function& f, const Tensor& x, const GradcheckOptions& options) {
  return gradcheck([&](const Inputs& in) { return f(in["x"]); }, {{"x", x}}, options);
}

}  // namespace fovea
