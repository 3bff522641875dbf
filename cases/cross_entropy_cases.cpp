#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "autograd/base/non_finite.h"
#include "autograd/ops/reference.h"
#include "cases/cases.h"

namespace fovea {
namespace {

// Targets for logits of that shape. Every third target is the ignored one, if there is one.
Indices targets_for(const Tensor& logits, std::optional<std::int64_t> ignored) {
  const Shape shape(logits.shape().begin(), logits.shape().end() - 1);
  std::vector<std::int64_t> targets;
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    targets.push_back(ignored && i % 3 == 1 ? *ignored : (3 * i + 1) % logits.size(-1));
  }
  return Indices(shape, targets);
}

// Row by row, sum_c -q_c log(exp(x_c) / sum exp(x)) + z w_target logsumexp(x)^2: the formula of ops.h.
Tensor loss_by_rows(const Tensor& logits, const Indices& targets, const CrossEntropyOptions& options) {
  const std::int64_t n = logits.size(-1);
  const std::vector<double> x = logits.to_vector();
  const std::vector<double> w = options.class_weights.defined()
                                    ? options.class_weights.to_vector()
                                    : std::vector<double>(static_cast<std::size_t>(n), 1.0);
  const double eps = options.label_smoothing;
  std::vector<double> losses;
  double total = 0, divisor = 0;
  for (std::int64_t row = 0; row < targets.numel(); ++row) {
    losses.push_back(0);
    if (targets[row] == options.ignore_index) continue;
    const auto logit = [&](std::int64_t j) { return x[static_cast<std::size_t>(row * n + j)]; };
    double exps = 0;
    for (std::int64_t j = 0; j < n; ++j) exps += std::exp(logit(j));
    const double of_target = w[static_cast<std::size_t>(targets[row])];
    for (std::int64_t j = 0; j < n; ++j) {
      const double q = (j == targets[row] ? (1 - eps) * of_target : 0) +
                       eps / static_cast<double>(n) * w[static_cast<std::size_t>(j)];
      losses.back() += q * (std::log(exps) - logit(j));
    }
    losses.back() += options.z_loss * of_target * std::log(exps) * std::log(exps);
    total += losses.back();
    divisor += of_target;
  }
  if (options.reduction == Reduction::none) return from_values(losses, targets.shape(), f64);
  if (options.reduction == Reduction::sum) return scalar(total, f64);
  return scalar(divisor > 0 ? total / divisor : 0, f64);
}

// The options with class weights that fit the logits, if weighted. Class 1 has weight 0.
CrossEntropyOptions options_for(CrossEntropyOptions options, bool weighted, const Tensor& logits) {
  if (!weighted) return options;
  std::vector<double> weights;
  for (std::int64_t c = 0; c < logits.size(-1); ++c) weights.push_back(c == 1 ? 0 : 0.5 + 0.25 * c);
  options.class_weights = from_values(weights, {logits.size(-1)}, logits.dtype());
  return options;
}

void refuse_wrong_targets(Case& c, const CrossEntropyOptions& options) {
  c.refuses<IndexError>("a target beyond the vocabulary", "target 5 at position (1, 0)",
                        [=](const Inputs& in) {
                          cross_entropy(in["logits"], Indices{{0, 1, 2}, {5, 4, 3}}, options);
                        });
  c.refuses<IndexError>("a negative target that is not the ignored one", "target -1 at position (0, 2)",
                        [=](const Inputs& in) {
                          cross_entropy(in["logits"], Indices{{0, 1, -1}, {0, 4, 3}}, options);
                        });
  c.refuses<ShapeError>("targets of another shape", "[cross_entropy]", [=](const Inputs& in) {
    cross_entropy(in["logits"], Indices{0, 1, 2}, options);
  });
  c.refuses<ShapeError>("a scalar", "[cross_entropy]",
                        [=](const Inputs&) { cross_entropy(scalar(1), Indices{0}, options); });
}

void add_cross_entropy(Cases& cases, const std::string& name, const CrossEntropyOptions& options,
                       bool weighted = false, std::int64_t classes = 5) {
  cases.add(name, [&](Case& c) {
    c.input("logits", {2, 3, classes});
    c.not_empty = {classes};
    const auto with = [=](auto f) {
      return [=](const Inputs& in) {
        const Tensor& logits = in["logits"];
        return f(logits, targets_for(logits, options.ignore_index), options_for(options, weighted, logits));
      };
    };
    c.value = with([](const auto&... arguments) { return cross_entropy(arguments...).loss; });
    c.oracle = with(loss_by_rows);
    c.reference = with([](const auto&... arguments) { return reference::cross_entropy(arguments...).loss; });
    c.kernel = "cross_entropy";
    c.backward_kernel = "cross_entropy_backward";
    if (classes == 5) refuse_wrong_targets(c, options);
  });
}

void add_cross_entropy_rows(Cases& cases) {
  for (const std::optional<std::int64_t> ignored : {std::optional<std::int64_t>(), {-100}, {2}}) {
    const std::string suffix = ignored ? fmt::format(", ignoring {}", *ignored) : "";
    add_cross_entropy(cases, "cross_entropy" + suffix, {.ignore_index = ignored});
    add_cross_entropy(cases, "cross_entropy, summed" + suffix,
                      {.ignore_index = ignored, .reduction = Reduction::sum});
    add_cross_entropy(cases, "cross_entropy, by row" + suffix,
                      {.ignore_index = ignored, .reduction = Reduction::none});
  }
  add_cross_entropy(cases, "cross_entropy, smoothed", {.label_smoothing = 0.25});
  add_cross_entropy(cases, "cross_entropy, smoothed throughout", {.label_smoothing = 1});
  add_cross_entropy(cases, "cross_entropy, weighted", {}, true);
  add_cross_entropy(cases, "cross_entropy, z-loss", {.z_loss = 0.5});
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    const CrossEntropyOptions all{
        .ignore_index = 2, .reduction = reduction, .label_smoothing = 0.25, .z_loss = 0.5};
    const std::string suffix = fmt::format(", reduction {}", static_cast<int>(reduction));
    add_cross_entropy(cases, "cross_entropy, all options" + suffix, all, true);
    add_cross_entropy(cases, "cross_entropy, all options, long rows" + suffix, all, true, 37);
  }
}

NamedFunction loss_of(const Indices& targets, const CrossEntropyOptions& options) {
  return [=](const Inputs& in) { return cross_entropy(in["logits"], targets, options).loss; };
}

void add_examples_of_logits(Case& c) {
  c.example({.name = "equal logits and one of -inf",
             .inputs = {{"logits", tensor({{0, 0, -infinity}}, f64)}},
             .value = {std::log(2.0)},
             .cotangent = {4},
             .gradients = {{"logits", {2, -2, 0}}},
             .of = loss_of({1}, {})});
  c.example({.name = "large logits",
             .inputs = {{"logits", tensor({{1e8, 1e8}, {-1e8, -1e8}}, f64)}},
             .value = {std::log(2.0)},
             .cotangent = {4},
             .gradients = {{"logits", {-1, 1, 1, -1}}},
             .of = loss_of({0, 1}, {})});
  c.example({.name = "every logit of a row is -inf",
             .inputs = {{"logits", tensor({{-infinity, -infinity}, {0, 0}}, f64)}},
             .value = {infinity, std::log(2.0)},
             .cotangent = {3, 4},
             .gradients = {{"logits", {0, 0, 2, -2}}},
             .of = loss_of({0, 1}, {.reduction = Reduction::none})});
  c.example({.name = "every logit of a row is -inf, with every option",
             .inputs = {{"logits", tensor({{-infinity, -infinity}, {0, 0}}, f64)}},
             .value = {infinity, std::log(2.0) + 0.5 * std::log(2.0) * std::log(2.0)},
             .cotangent = {3, 4},
             .gradients = {{"logits", {0, 0, 1 + 2 * std::log(2.0), 2 * std::log(2.0) - 1}}},
             .of = loss_of({0, 1}, {.reduction = Reduction::none, .label_smoothing = 0.5, .z_loss = 0.5})});
}

void add_examples_of_ignored_targets(Case& c) {
  c.example({.name = "every target is ignored",
             .inputs = {{"logits", tensor({{1, 2}, {3, 4}}, f64)}},
             .value = {0},
             .cotangent = {3},
             .gradients = {{"logits", {0, 0, 0, 0}}},
             .of = loss_of({-1, -1}, {.ignore_index = -1})});
  c.example({.name = "NaN in a row that is ignored",
             .inputs = {{"logits", tensor({{std::nan(""), 1}, {0, 0}}, f64)}},
             .value = {std::log(2.0)},
             .gradients = {{"logits", {0, 0, -0.5, 0.5}}},
             .of = loss_of({-1, 0}, {.ignore_index = -1})});
}

void add_examples_of_weights(Case& c) {
  c.example(
      {.name = "smoothed over a class of weight 0 whose logit is -inf",
       .inputs = {{"logits", tensor({{0, 0, -infinity}}, f64)}},
       .value = {0.75 * std::log(2.0) + 0.25 / 3 * 2 * std::log(2.0)},
       .gradients = {{"logits", {0.375 + 0.25 / 3 - 0.75 - 0.25 / 3, 0.375, 0}}},
       .of = [](const Inputs& in) {
         const Tensor weights = tensor({1, 1, 0}, in["logits"].dtype());
         return cross_entropy(in["logits"], {0}, {.label_smoothing = 0.25, .class_weights = weights}).loss;
       }});
  c.example(
      {.name = "every target has weight 0",
       .inputs = {{"logits", tensor({{1, 2}, {3, 4}}, f64)}},
       .value = {0},
       .gradients = {{"logits", {0, 0, 0, 0}}},
       .of = [](const Inputs& in) {
         const Tensor weights = tensor({1, 0}, in["logits"].dtype());
         return cross_entropy(in["logits"], {1, 1}, {.label_smoothing = 0.25, .class_weights = weights}).loss;
       }});
}

void refuse_wrong_loss_options(Case& c) {
  const auto refuses = [&]<class E>(std::type_identity<E>, const std::string& name,
                                    const CrossEntropyOptions& options) {
    c.refuses<E>(name, "[cross_entropy]", [=](const Inputs&) {
      cross_entropy(zeros({2, 3}), {0, 1}, options);
    });
  };
  const std::type_identity<ValueError> value;
  refuses(value, "smoothing above 1", {.label_smoothing = 1.5});
  refuses(value, "a z-loss below 0", {.z_loss = -1});
  refuses(value, "a weight below 0", {.class_weights = tensor({1, -1, 1})});
  refuses(std::type_identity<ShapeError>(), "weights of another size", {.class_weights = ones({2})});
  refuses(std::type_identity<DtypeError>(), "weights of another dtype", {.class_weights = ones({3}, f64)});
  refuses(std::type_identity<GraphError>(), "weights that require a gradient",
          {.class_weights = ones({3}).set_requires_grad()});
}

void add_loss_examples(Cases& cases) {
  cases.add("cross_entropy, examples", [](Case& c) {
    c.input("logits", {37});
    c.fixed_sizes = {37};
    c.value = [](const Inputs& in) {
      return cross_entropy(in["logits"], Indices({}, std::vector<std::int64_t>{31})).loss;
    };
    c.oracle = [](const Inputs& in) {
      return loss_by_rows(in["logits"], Indices({}, std::vector<std::int64_t>{31}), {});
    };
    add_examples_of_logits(c);
    add_examples_of_ignored_targets(c);
    add_examples_of_weights(c);
    refuse_wrong_loss_options(c);
  });
}

}  // namespace

void add_cross_entropy_cases(Cases& cases) {
  add_cross_entropy_rows(cases);
  add_loss_examples(cases);
}

}  // namespace fovea
