#include "fovea/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "autograd/fail.h"
#include "autograd/kernels/strided.h"
#include "fovea/autograd/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/rng.h"

namespace fovea {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();

// --- The numeric derivative
// ---------------------------------------------------------------------------------

struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();
  double error = infinity;
};

// A central difference quotient, and what rounding may have done to it.
struct Quotient {
  double value;
  double rounding;
};

// The limit of quotient(h) for h -> 0. Three steps in ratio 2 make a window, whose extrapolation removes the
// h^2 and h^4 terms of the error. The search ends when two neighbouring windows agree to `wanted`, so that a
// smooth convergence to something else (a kink between the steps, an oscillation faster than they are) goes
// on.
template <class F>
Estimate extrapolate(double first_step, double wanted, const F& quotient) {
  constexpr int steps = 24;
  Estimate best;
  Quotient previous{}, before_previous{};
  double last_window = std::numeric_limits<double>::quiet_NaN();
  for (int k = 0; k < steps; ++k) {
    const Quotient current = quotient(std::ldexp(first_step, -k));
    if (k >= 2) {
      const double coarse = (4 * previous.value - before_previous.value) / 3;
      const double fine = (4 * current.value - previous.value) / 3;
      const double window = (16 * fine - coarse) / 15;
      const double error = std::abs(window - fine) + std::abs(window - last_window) + 2 * current.rounding;
      if (error < best.error) best = {window, error};
      if (best.error <= wanted * std::max(1.0, std::abs(best.value))) break;
      last_window = window;
    }
    before_previous = std::exchange(previous, current);
  }
  return best;
}

// --- One function of tensors that are moved in place
// --------------------------------------------------------

// Where element i, in row-major order, lies in the tensor's array.
std::vector<std::int64_t> element_offsets(const Tensor& x) {
  std::vector<std::int64_t> offsets;
  kernels::for_each_offset(x.shape(), x.strides(), [&](std::int64_t offset) { offsets.push_back(offset); });
  return offsets;
}

Shape position_of(std::int64_t element, const Shape& shape) {
  Shape position(shape.size(), 0);
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    position[axis] = element % shape[axis];
  return position;
}

// Moves one element for as long as it lives.
class Moved {
 public:
  Moved(Tensor x, std::int64_t offset)
      : x_(std::move(x)), offset_(offset), original_(x_.data<double>()[offset]) {}
  ~Moved() { to(original_); }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  double original() const { return original_; }
  void to(double value) { x_.mutable_data<double>()[offset_] = value; }

 private:
  Tensor x_;
  std::int64_t offset_;
  double original_;
};

// Random, but of either sign and not near 0, so that no element of an output goes unseen.
Tensor random_weights(const Shape& shape, Rng& rng) {
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = (rng.below(2) ? 1 : -1) * (0.5 + rng.uniform());
  return from_values(values, shape, f64);
}

std::vector<double> flatten(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& x : tensors) {
    const std::vector<double> values = x.to_vector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// What is compared at one order: `values`, contracted with fixed weights, as a function of the inputs.
// `values` is told whether its result will be differentiated.
class Comparison {
 public:
  using Values = std::function<std::vector<Tensor>(bool differentiable)>;

  Comparison(int order, std::vector<NamedTensor> inputs, Values values, Rng& rng)
      : order_(order), inputs_(std::move(inputs)), values_(std::move(values)) {
    const std::vector<Tensor> now = values_(true);
    std::vector<Tensor> targets, weights;
    for (const NamedTensor& input : inputs_) targets.push_back(input.tensor);
    for (const Tensor& value : now) weights.push_back(random_weights(value.shape(), rng));
    weights_ = flatten(weights);
    analytic_ = grad(now, targets, {.gradients = weights, .allow_unused = true});
    const std::vector<double> elements = flatten(now);
    for (std::size_t i = 0; i < elements.size(); ++i) noise_ += epsilon * std::abs(weights_[i] * elements[i]);
  }

  void run(const GradcheckOptions& options, GradcheckReport& report) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) check_tensor(i, options, report);
    report.evaluations += evaluations_;
  }

 private:
  void check_tensor(std::size_t i, const GradcheckOptions& options, GradcheckReport& report) {
    const auto& [name, x] = inputs_[i];
    const std::vector<double> analytic = analytic_[i].to_vector();
    const std::vector<std::int64_t> offsets = element_offsets(x);
    TensorCheck tensor{.order = order_, .input = name, .shape = x.shape()};
    std::vector<ElementCheck> elements;
    bool all_zero = true;
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      const Estimate numeric = differentiate(x, offsets[k], options.tolerance);
      elements.push_back({order_, name, position_of(static_cast<std::int64_t>(k), x.shape()), analytic[k],
                          numeric.value, numeric.error});
      tensor.largest = std::max(tensor.largest, std::abs(numeric.value));
      const double zero = 10 * numeric.error + noise_;
      all_zero = all_zero && std::abs(numeric.value) <= zero && std::abs(analytic[k]) <= zero;
    }
    const double limit = options.tolerance * std::max(1.0, tensor.largest);
    for (ElementCheck& element : elements) {
      const double difference = std::abs(element.difference());
      // Written so that NaN is wrong.
      element.verdict = !(difference <= limit)      ? Verdict::wrong
                        : !(element.error <= limit) ? Verdict::inconclusive
                                                    : Verdict::pass;
      if (!(difference <= tensor.worst)) tensor.worst = difference;
      if (element.verdict != Verdict::pass) report.failures.push_back(element);
    }
    tensor.vacuous = all_zero && std::ranges::find(options.expect_zero, name) == options.expect_zero.end();
    report.elements += static_cast<std::int64_t>(elements.size());
    report.tensors.push_back(std::move(tensor));
  }

  Estimate differentiate(const Tensor& x, std::int64_t offset, double tolerance) {
    Moved element(x, offset);
    const double centre = element.original();
    return extrapolate(0x1p-7 * std::max(1.0, std::abs(centre)), 1e-3 * tolerance, [&](double step) {
      const double above = centre + step, below = centre - step;
      element.to(above);
      const std::vector<double> high = evaluate();
      element.to(below);
      const std::vector<double> low = evaluate();
      Quotient quotient{0, 0};
      for (std::size_t i = 0; i < high.size(); ++i) {
        if (high[i] == low[i]) continue;  // not a function of this element
        quotient.value += weights_[i] * (high[i] - low[i]);
        quotient.rounding += epsilon * std::abs(weights_[i]) * std::max(std::abs(high[i]), std::abs(low[i]));
      }
      quotient.value /= above - below;
      quotient.rounding /= above - below;
      return quotient;
    });
  }

  std::vector<double> evaluate() {
    ++evaluations_;
    return flatten(values_(false));
  }

  int order_;
  std::vector<NamedTensor> inputs_;
  Values values_;
  std::vector<double> weights_;
  std::vector<Tensor> analytic_;
  double noise_ = 0;  // what rounding may do to the contracted values
  std::int64_t evaluations_ = 0;
};

GradcheckReport check_first_order(const std::function<Tensor()>& f, const std::vector<NamedTensor>& tensors,
                                  const GradcheckOptions& options) {
  GradcheckReport report{.tolerance = options.tolerance};
  Rng rng(options.seed);
  // Recorded even where no gradient of it is asked for: f may itself ask for one.
  const auto values = [&](bool) -> std::vector<Tensor> { return {f()}; };
  Comparison(1, tensors, values, rng).run(options, report);
  return report;
}

// The gradient is a function of the inputs and of the cotangent; a rule that loses sight of either is wrong.
void check_second_order(const std::function<Tensor()>& f, const std::vector<NamedTensor>& tensors,
                        const GradcheckOptions& options, GradcheckReport& report) {
  Rng rng(options.seed + 1);
  Tensor cotangent = random_weights(f().shape(), rng);
  cotangent.set_requires_grad();
  std::vector<Tensor> targets;
  for (const NamedTensor& input : tensors) targets.push_back(input.tensor);
  const auto gradients = [&](bool differentiable) {
    return grad({f()}, targets,
                {.gradients = {cotangent}, .create_graph = differentiable, .allow_unused = true});
  };
  std::vector<NamedTensor> inputs = tensors;
  inputs.push_back({"cotangent", cotangent});

  GradcheckReport second;
  Comparison(2, inputs, gradients, rng).run(options, second);
  // What is linear in one input has no second derivative there; but if nothing at all moves the gradient,
  // there was nothing to check.
  const bool all_vacuous = std::ranges::all_of(second.tensors, &TensorCheck::vacuous);
  for (TensorCheck& tensor : second.tensors) {
    tensor.vacuous = all_vacuous && tensor.input != "cotangent";
    report.tensors.push_back(std::move(tensor));
  }
  std::ranges::move(second.failures, std::back_inserter(report.failures));
  report.elements += second.elements;
  report.evaluations += second.evaluations;
}

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

void check_arguments(const std::vector<NamedTensor>& tensors, const GradcheckOptions& options) {
  if (options.order != 1 && options.order != 2) {
    fail<ValueError>("[gradcheck] order {} asked for: it must be 1 or 2", options.order);
  }
  for (const std::string& name : options.expect_zero) {
    if (std::ranges::find(tensors, name, &NamedTensor::name) == tensors.end()) {
      fail<ValueError>("[gradcheck] expect_zero names '{}', which is no input", name);
    }
  }
  for (const auto& [name, x] : tensors) {
    if (x.dtype() != f64) {
      fail<DtypeError>(
          "[gradcheck] '{}' is {}: gradients are checked in f64, so convert it or its layer first", name,
          name_of(x.dtype()));
    }
    for (std::size_t axis = 0; axis < x.rank(); ++axis) {
      if (x.strides()[axis] == 0 && x.shape()[axis] > 1) {
        fail<ValueError>(
            "[gradcheck] '{}' {} repeats along axis {}: its elements share memory, so none can be moved "
            "alone; check a clone",
            name, to_string(x.shape()), axis);
      }
    }
  }
}

double severity(const ElementCheck& element) {
  const double difference = std::abs(element.difference());
  return std::isnan(difference) ? infinity : difference;
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

GradcheckReport gradcheck_in_place(const std::function<Tensor()>& f, const std::vector<NamedTensor>& tensors,
                                   const GradcheckOptions& options) {
  check_arguments(tensors, options);
  const Leaves leaves(tensors);
  GradcheckReport report = check_first_order(f, tensors, options);
  if (options.order == 2) check_second_order(f, tensors, options, report);
  std::ranges::stable_sort(report.failures, std::greater<>(), severity);
  return report;
}

GradcheckReport gradcheck(const NamedFunction& f, const Inputs& inputs, const GradcheckOptions& options) {
  std::vector<NamedTensor> copies;
  for (const auto& [name, x] : inputs) copies.push_back({name, from_values(x.to_vector(), x.shape(), f64)});
  const Inputs leaves(copies);
  return gradcheck_in_place([&] { return f(leaves); }, copies, options);
}

GradcheckReport gradcheck(const Function& f, const Tensor& x, const GradcheckOptions& options) {
  return gradcheck([&](const Inputs& in) { return f(in["x"]); }, {{"x", x}}, options);
}

bool GradcheckReport::passed() const {
  return failures.empty() && !tensors.empty() && std::ranges::none_of(tensors, &TensorCheck::vacuous);
}

double GradcheckReport::worst() const {
  double worst = 0;
  for (const TensorCheck& tensor : tensors) {
    const double relative = tensor.worst / std::max(1.0, tensor.largest);
    if (!(relative <= worst)) worst = relative;
  }
  return worst;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::wrong:
      return "wrong";
    case Verdict::inconclusive:
      return "inconclusive";
  }
  return "";
}

namespace {

std::string table_of(std::span<const ElementCheck> elements) {
  std::size_t width = 5;
  for (const ElementCheck& element : elements) width = std::max(width, element.input.size());
  std::string text = fmt::format("\norder  {:<{}}  {:<14} {:>22} {:>22} {:>9} {:>12}  verdict", "input",
                                 width, "index", "analytic", "numeric", "+-", "difference");
  for (const ElementCheck& element : elements) {
    text += fmt::format("\n{:<5}  {:<{}}  {:<14} {:>22.15g} {:>22.15g} {:>9.1e} {:>12.3e}  {}", element.order,
                        element.input, width, to_string(element.index), element.analytic, element.numeric,
                        element.error, element.difference(), name_of(element.verdict));
  }
  return text;
}

}  // namespace

std::string to_string(const GradcheckReport& report, std::size_t rows) {
  std::string text = fmt::format(
      "{}: {} elements of {} tensors in {} evaluations, {} not passed, worst error {:.1e} (tolerance {:.0e} "
      "* max(1, largest |numeric|))",
      report.passed() ? "passed" : "FAILED", report.elements, report.tensors.size(), report.evaluations,
      report.failures.size(), report.worst(), report.tolerance);
  if (report.tensors.empty()) text += "\nvacuous: there is no input";
  for (const TensorCheck& tensor : report.tensors) {
    if (!tensor.vacuous) continue;
    text += fmt::format("\nvacuous: order {}, {} {}: {}", tensor.order, tensor.input, to_string(tensor.shape),
                        numel(tensor.shape) ? "every gradient is zero" : "it has no element");
  }
  const std::size_t shown = std::min(rows, report.failures.size());
  if (shown > 0) text += table_of({report.failures.data(), shown});
  if (report.failures.size() > shown)
    text += fmt::format("\n... and {} more", report.failures.size() - shown);
  return text;
}

}  // namespace fovea
