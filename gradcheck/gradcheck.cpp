#include "fovea/gradcheck/gradcheck.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "gradcheck/comparison.h"
#include "gradcheck/f32_drift.h"

namespace fovea {

using detail::Comparison;
using detail::Excluded;
using detail::Subject;

namespace {

// Tensors require a gradient while this lives, and are put back as they were.
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

// --- What can't be checked ---------------------------------------------------------------------------------

// Why moving one element would move another; empty if it does not.
std::string overlap(const std::string& name, const Tensor& x) {
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (x.strides()[axis] == 0 && x.shape()[axis] > 1 && x.numel() > 0) {
      return fmt::format(
          "'{}' {} repeats along axis {}: its elements share memory, so none can be moved alone; check a "
          "clone",
          name, to_string(x.shape()), axis);
    }
  }
  return {};
}

std::string first_overlap(const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, x] : tensors) {
    if (std::string why = overlap(name, x); !why.empty()) return why;
  }
  return {};
}

void check_arguments(const std::vector<NamedTensor>& tensors, const GradcheckOptions& options) {
  if (options.order != 1 && options.order != 2) {
    fail<ValueError>("[gradcheck] order {} asked for: it must be 1 or 2", options.order);
  }
  if (!(options.tolerance > 0)) {
    fail<ValueError>("[gradcheck] tolerance {} asked for: it must be above 0", options.tolerance);
  }
  if (options.screen && (options.screen->directions < 1 || options.screen->elements < 0)) {
    fail<ValueError>(
        "[gradcheck] a screen of {} directions and {} elements: at least one direction is needed",
        options.screen->directions, options.screen->elements);
  }
  for (const std::string& name : options.expect_zero) {
    if (std::ranges::find(tensors, name, &NamedTensor::name) == tensors.end()) {
      fail<ValueError>("[gradcheck] expect_zero names '{}', which is no input", name);
    }
  }
}

// --- First and second order ----------------------------------------------------------------------------

constexpr int most_draws = 3;

// A draw of random vectors may leave so little of a derivative that rounding hides it, as where the cotangent
// of a log_softmax sums to almost zero. So where that is all that was found, another draw is asked. Nothing
// else is: what is wrong for one draw is wrong.
std::vector<double> run_drawn(const std::function<Comparison(Rng&)>& draw, const GradcheckOptions& options,
                              const Excluded& excluded, Rng& rng, GradcheckReport& report) {
  for (int left = most_draws;; --left) {
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

// Returns the noise of each gradient.
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

// In Jacobian mode a tensor is looked at once for each output: joins what was found, so that it is vacuous
// only if it is for all.
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

// The gradient is a function of the inputs and of the cotangent; a rule that loses sight of either is wrong.
void check_second_order(const std::function<Tensor()>& f, const std::vector<NamedTensor>& tensors,
                        const std::vector<double>& noise, const GradcheckOptions& options,
                        const Excluded& excluded, GradcheckReport& report) {
  Rng rng(options.seed + 1);
  const Shape shape = f().shape();
  const std::vector<Tensor> targets = tensors_of(tensors);
  const auto draw = [&](Rng& from) {
    Tensor cotangent = detail::random_weights(shape, from);
    cotangent.set_requires_grad();
    // The numbers alone come cheaper, and from the kernels that train.
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
  // What is linear in one input has no second derivative there; but if nothing at all moves the gradient,
  // there was nothing to check.
  const auto second = std::span(report.tensors).subspan(first);
  const bool all_vacuous = std::ranges::all_of(second, &TensorCheck::vacuous);
  for (TensorCheck& tensor : second) tensor.vacuous = all_vacuous && tensor.input != "cotangent";
}

// The worst first; those for which no number says how bad they are, before all.
void sort_by_severity(std::vector<ElementCheck>& elements) {
  std::ranges::stable_sort(elements, std::greater<>(), [](const ElementCheck& element) {
    return std::isnan(element.relative) ? std::numeric_limits<double>::infinity() : element.relative;
  });
}

using Clock = std::chrono::steady_clock;

GradcheckReport new_report(const GradcheckOptions& options) {
  return {.tolerance = options.tolerance,
          .seed = options.seed,
          .screened = options.screen.has_value(),
          .kinks_fail = options.kinks_fail};
}

void finish(GradcheckReport& report, Clock::time_point start) {
  sort_by_severity(report.failures);
  sort_by_severity(report.kinks);
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
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

// The gradients of f, or, at order 2, those of its gradients contracted with random vectors.
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
    const double limit = roundings * std::numeric_limits<double>::epsilon() * tensor.largest;
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

const Tensor& Inputs::operator[](std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
  if (found == tensors_.end()) {
    std::string names;
    for (const NamedTensor& named : tensors_) names += (names.empty() ? "" : ", ") + named.name;
    fail<ValueError>("[inputs] there is no '{}', only: {}", name, names);
  }
  return found->tensor;
}

void detail::check_arity(std::size_t parameters, std::size_t inputs) {
  if (parameters == inputs) return;
  fail<ValueError>("[gradcheck] the function takes {} tensors, and {} inputs are given", parameters, inputs);
}

void detail::refuse_arity(std::size_t inputs) {
  fail<ValueError>("[gradcheck] the layer can't be called with {} tensors", inputs);
}

GradcheckReport gradcheck_in_place(const std::function<Tensor()>& f, const std::vector<NamedTensor>& tensors,
                                   const GradcheckOptions& options) {
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

GradcheckReport compare_functions(const NamedFunction& f, const NamedFunction& expected, const Inputs& inputs,
                                  const GradcheckOptions& options, double roundings) {
  const Clock::time_point start = Clock::now();
  std::vector<NamedTensor> copies;
  std::vector<std::string> names{"output"};
  for (const auto& [name, x] : inputs) {
    Tensor copy = from_values(x.to_vector(), x.shape(), f64);
    copies.push_back({name, copy.set_requires_grad()});
    names.push_back(name);
  }
  check_arguments(copies, options);
  GradcheckReport report = new_report(options);
  for (int order = 1; order <= options.order; ++order) {
    const Inputs leaves(copies);
    compare_derivatives(derivatives(f, leaves, order, options.seed),
                        derivatives(expected, leaves, order, options.seed), names, order, roundings, report);
    report.evaluations += 2;
    names.erase(names.begin());
  }
  finish(report, start);
  return report;
}

}  // namespace fovea
