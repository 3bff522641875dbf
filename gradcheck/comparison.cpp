#include "gradcheck/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/kernels/strided.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "gradcheck/constants.h"
#include "gradcheck/hints.h"
#include "gradcheck/richardson.h"

namespace fovea::detail {
namespace {

// The offset of element i, in row-major order, in the array of the tensor.
std::vector<std::int64_t> element_offsets(const Tensor& x) {
  std::vector<std::int64_t> offsets;
  kernels::for_each_offset(x.shape(), x.strides(), [&](std::int64_t offset) { offsets.push_back(offset); });
  return offsets;
}

// Moves some elements of a tensor along a direction, and puts them back when it is destroyed.
class Moved {
 public:
  Moved(Tensor x, std::vector<std::int64_t> offsets, std::vector<double> direction)
      : x_(std::move(x)), offsets_(std::move(offsets)), direction_(std::move(direction)) {
    const double* data = x_.data<double>();
    for (const std::int64_t offset : offsets_) original_.push_back(data[offset]);
  }
  ~Moved() {
    double* data = x_.mutable_data<double>();
    for (std::size_t i = 0; i < offsets_.size(); ++i) data[offsets_[i]] = original_[i];
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  // Moves by t. Returns the distance: for a single element, the exact one that floating point allows.
  double to(double t) {
    double* data = x_.mutable_data<double>();
    for (std::size_t i = 0; i < offsets_.size(); ++i) data[offsets_[i]] = original_[i] + t * direction_[i];
    return offsets_.size() == 1 ? data[offsets_[0]] - original_[0] : t;
  }

 private:
  Tensor x_;
  std::vector<std::int64_t> offsets_;
  std::vector<double> direction_, original_;
};

// What was found along one line through a tensor.
struct Finding {
  std::optional<std::size_t> element;  // absent for a random direction
  double position = 0;
  double analytic = 0;
  Differences differences = {};
};

// Compares the gradient of one input, element by element or along random directions.
class TensorComparison {
 public:
  TensorComparison(const Comparison& comparison, std::size_t input, std::span<const double> centre,
                   const Tensor& gradient, double noise, const GradcheckOptions& options)
      : comparison_(comparison),
        options_(options),
        name_(comparison.inputs[input].name),
        x_(comparison.inputs[input].tensor),
        offsets_(element_offsets(x_)),
        values_(x_.to_vector()),
        centre_(centre),
        analytic_(gradient.to_vector()),
        weights_(flatten(comparison.weights)),
        value_noise_(comparison.noise.empty() ? std::vector<double>(weights_.size(), 0) : comparison.noise),
        scale_(largest_of(values_)),
        largest_analytic_(largest_of(analytic_)),
        noise_(noise) {}

  void check_elements(const Excluded& excluded) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!excluded(name_, index(i))) check_element(i);
    }
  }

  // Compares along random directions of about length 1, where a step is as long as for a single element.
  void screen(const Screen& screen, const Excluded& excluded, Rng& rng) {
    std::vector<std::size_t> checked;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!excluded(name_, index(i))) checked.push_back(i);
    }
    if (checked.empty()) return;
    for (int k = 0; k < screen.directions; ++k) check_direction(checked, rng);
    for (std::int64_t k = 0; k < screen.elements; ++k) {
      check_element(
          checked[static_cast<std::size_t>(rng.uniform_int(static_cast<std::int64_t>(checked.size())))]);
    }
  }

  void report_to(GradcheckReport& report) const {
    TensorCheck tensor{.order = comparison_.order, .input = name_, .shape = x_.shape()};
    double terms = 0;
    for (const Finding& found : findings_) {
      const double n = std::abs(found.differences.best().value);
      if (std::isfinite(n)) tensor.largest = std::max(tensor.largest, n);
      terms = std::max(terms, found.differences.terms);
    }
    const double typical = std::max(tensor.largest, terms / constants::cancellation_divisor);
    bool all_zero = true, any_wrong = false;
    for (const Finding& found : findings_) {
      const ElementCheck element = judge(found, typical);
      report.evaluations += found.differences.evaluations;
      all_zero = all_zero && is_zero(found);
      any_wrong = any_wrong || element.verdict == Verdict::wrong;
      if (tensor.elements++ == 0 || !(element.relative <= tensor.worst.relative)) tensor.worst = element;
      if (element.verdict == Verdict::kink && !options_.kinks_fail) {
        report.kinks.push_back(element);
      } else if (element.verdict != Verdict::pass) {
        report.failures.push_back(element);
      }
    }
    tensor.vacuous = all_zero && std::ranges::find(options_.expect_zero, name_) == options_.expect_zero.end();
    if (any_wrong) tensor.hint = find_hint(tensor.largest);
    report.elements += tensor.elements;
    report.tensors.push_back(std::move(tensor));
  }

 private:
  Shape index(std::size_t i) const { return position_of(static_cast<std::int64_t>(i), x_.shape()); }

  void check_element(std::size_t i) {
    Moved line(x_, {offsets_[i]}, {1.0});
    findings_.push_back({i, values_[i], analytic_[i], differentiate_along(line, values_[i], analytic_[i])});
  }

  void check_direction(const std::vector<std::size_t>& elements, Rng& rng) {
    const double length = std::sqrt(static_cast<double>(elements.size()));
    std::vector<std::int64_t> offsets;
    std::vector<double> direction;
    double analytic = 0;
    for (const std::size_t i : elements) {
      offsets.push_back(offsets_[i]);
      direction.push_back(random_weight(rng) / length);
      analytic += direction.back() * analytic_[i];
    }
    Moved line(x_, std::move(offsets), std::move(direction));
    findings_.push_back({{}, 0, analytic, differentiate_along(line, 0, analytic)});
  }

  Differences differentiate_along(Moved& line, double position, double analytic) const {
    const auto along = [&](double t) {
      Sample sample;
      sample.t = line.to(t);
      sample.values = flatten(comparison_.values(false));
      return sample;
    };
    // The search is given the analytic gradient, so that it can end early where a difference confirms it.
    const double limit =
        options_.tolerance * (std::abs(analytic) + constants::share_of_largest * largest_analytic_);
    return differentiate(along, centre_, weights_, value_noise_, {position, scale_, analytic, limit});
  }

  // The largest value that a derivative of 0 may show.
  double rounding_of(const Finding& found) const {
    return std::max(found.differences.rounding_of_zero(found.position), noise_);
  }

  bool is_zero(const Finding& found) const {
    const Slope numeric = found.differences.best();
    const double rounding = rounding_of(found);
    return std::abs(found.analytic) <= rounding &&
           std::abs(numeric.value) <= std::max(rounding, std::isfinite(numeric.error) ? numeric.error : 0);
  }

  ElementCheck judge(const Finding& found, double typical) const {
    const Differences& d = found.differences;
    const Slope numeric = d.best();
    const double difference = std::abs(found.analytic - numeric.value);
    const double scale = std::abs(numeric.value) + constants::share_of_largest * typical;
    const double rounding = rounding_of(found);

    ElementCheck element{comparison_.order, name_,         found.element ? index(*found.element) : Shape{},
                         found.analytic,    numeric.value, numeric.error};
    element.output = comparison_.output;
    Limits limits{options_.tolerance * scale + noise_, options_.tolerance * scale + noise_};
    if (std::abs(found.analytic) <= rounding) {
      // The rule gives zero, which cannot be seen more precisely than the rounding of f allows.
      limits.difference = std::max(limits.difference, rounding);
      limits.error = d.noise > 0 ? constants::noise_error_ratio * limits.difference
                                 : std::max(limits.error,
                                            constants::zero_error_tolerance * options_.tolerance * rounding /
                                                (constants::zero_roundings * constants::epsilon));
    }
    if (difference != 0) element.relative = options_.tolerance * difference / limits.difference;
    element.verdict = verdict_of(d, found.analytic, limits);
    if (element.verdict == Verdict::kink) {
      element.left = d.left.value;
      element.right = d.right.value;
      element.relative = 0;
    }
    return element;
  }

  // How far the rule may be from the numeric derivative, and how large the error of the latter may be.
  struct Limits {
    double difference, error;
  };

  static Verdict verdict_of(const Differences& d, double analytic, const Limits& limits) {
    const Slope numeric = d.best();
    const double difference = std::abs(analytic - numeric.value);
    if (!d.finite) return Verdict::non_finite;
    if (difference <= limits.difference + numeric.error && numeric.error <= limits.error)
      return Verdict::pass;
    if (d.is_kink(analytic, limits.difference)) return Verdict::kink;
    if (!std::isfinite(analytic) || !std::isfinite(numeric.value)) return Verdict::non_finite;
    return difference > limits.difference + numeric.error ? Verdict::wrong : Verdict::inconclusive;
  }

  std::string find_hint(double largest) const {
    if (comparison_.output || findings_.size() != values_.size()) return {};
    std::vector<double> numeric, errors;
    std::vector<WrongGradient::Column> columns;
    for (const Finding& found : findings_) {
      if (!found.element) return {};
      const Slope slope = found.differences.best();
      numeric.push_back(slope.value);
      errors.push_back(slope.error);
      if (!found.differences.by_output.empty()) {
        columns.push_back({*found.element, found.differences.by_output});
      }
    }
    const Shape shape = x_.shape(), output = comparison_.weights.front().shape();
    const double limit =
        std::clamp(constants::hint_errors * largest_of(errors), constants::smallest_hint_limit * largest,
                   constants::largest_hint_limit * largest);
    return hint({shape, values_, analytic_, numeric, limit, columns, output, weights_});
  }

  const Comparison& comparison_;
  const GradcheckOptions& options_;
  const std::string& name_;
  Tensor x_;
  std::vector<std::int64_t> offsets_;
  std::vector<double> values_;
  std::span<const double> centre_;  // the values of the comparison with no input moved
  std::vector<double> analytic_, weights_, value_noise_;
  double scale_, largest_analytic_, noise_;
  std::vector<Finding> findings_;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  return std::ranges::equal(x, y,
                            [](double u, double v) { return u == v || (std::isnan(u) && std::isnan(v)); });
}

}  // namespace

double random_weight(Rng& rng) {
  const double sign = rng.uniform_int(2) ? 1 : -1;
  return sign * (constants::smallest_weight + rng.uniform());
}

Tensor random_weights(const Shape& shape, Rng& rng) {
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = random_weight(rng);
  return from_values(values, shape, f64);
}

std::vector<double> flatten(const std::vector<Tensor>& tensors) {
  if (tensors.size() == 1) return tensors[0].to_vector();
  std::vector<double> all;
  for (const Tensor& x : tensors) {
    const std::vector<double> values = x.to_vector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

double largest_of(std::span<const double> values) {
  double largest = 0;
  for (const double v : values) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  return largest;
}

std::vector<double> Comparison::noise_of(const GradientsFor& gradients, const std::vector<double>& analytic,
                                         Rng& rng) const {
  std::vector<double> moves(analytic.size(), 0);
  for (int draw = 0; draw < constants::noise_draws; ++draw) {
    const double scale = 1 + constants::noise_scaling * (0.5 + rng.uniform());
    std::vector<Tensor> moved;
    for (const Tensor& w : weights)
      moved.push_back(w * (scale + constants::noise_jitter * randn(w.shape(), rng, f64)));
    const std::vector<double> near = flatten(gradients(moved));
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const double move = std::abs(near[i] / scale - analytic[i]);
      if (std::isfinite(move)) moves[i] = std::max(moves[i], move);
    }
  }
  return moves;
}

std::vector<double> Comparison::run(const GradcheckOptions& options, const Excluded& excluded, Rng& rng,
                                    GradcheckReport& report) const {
  std::vector<Tensor> targets;
  for (const NamedTensor& input : inputs) targets.push_back(input.tensor);
  const GradientsFor gradients = [&](const std::vector<Tensor>& cotangents) {
    return grad(values(true), targets, {.gradients = cotangents, .allow_unused = true});
  };
  const std::vector<Tensor> analytic = gradients(weights), again = gradients(weights);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (report.not_deterministic.empty() && !same_bits(analytic[i], again[i])) {
      report.not_deterministic = fmt::format(
          "two passes over the same numbers gave different gradients of {}, order {}", inputs[i].name, order);
    }
  }
  report.evaluations += 2;
  if (!report.not_deterministic.empty()) return {};  // there is no one gradient to compare
  std::vector<double> gradient_noise = noise_of(gradients, flatten(analytic), rng);
  const std::vector<double> centre = flatten(values(false));
  report.evaluations += constants::noise_draws + 1;
  auto rest = std::span<const double>(gradient_noise);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto elements = static_cast<std::size_t>(inputs[i].tensor.numel());
    TensorComparison tensor(*this, i, centre, analytic[i],
                            constants::noise_safety * largest_of(rest.first(elements)), options);
    rest = rest.subspan(elements);
    if (options.screen) {
      tensor.screen(*options.screen, excluded, rng);
    } else {
      tensor.check_elements(excluded);
    }
    tensor.report_to(report);
  }
  return gradient_noise;
}

}  // namespace fovea::detail
