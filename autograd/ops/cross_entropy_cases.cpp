#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/cases.h"
#include "fovea/autograd/composed.h"

namespace fovea {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Targets for logits of that shape. Every third is `ignored`, if one is.
Indices targets_for(const Tensor& logits, std::optional<std::int64_t> ignored) {
  const Shape shape(logits.shape().begin(), logits.shape().end() - 1);
  std::vector<std::int64_t> targets;
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    targets.push_back(ignored && i % 3 == 1 ? *ignored : (3 * i + 1) % logits.size(-1));
  }
  return Indices(shape, targets);
}

// -log(exp(x_target) / sum exp(x)), row by row.
Tensor loss_by_rows(const Tensor& logits, const Indices& targets, const CrossEntropyOptions& options) {
  const std::int64_t n = logits.size(-1);
  const std::vector<double> x = logits.to_vector();
  std::vector<double> losses;
  double total = 0, kept = 0;
  for (std::int64_t row = 0; row < targets.numel(); ++row) {
    const bool ignored = targets[row] == options.ignore_index;
    double exps = 0;
    for (std::int64_t j = 0; j < n; ++j) exps += std::exp(x[static_cast<std::size_t>(row * n + j)]);
    losses.push_back(ignored ? 0 : std::log(exps) - x[static_cast<std::size_t>(row * n + targets[row])]);
    total += losses.back();
    kept += ignored ? 0 : 1;
  }
  if (options.reduction == Reduction::none) return from_values(losses, targets.shape(), f64);
  return scalar(options.reduction == Reduction::sum ? total : total / std::max(1.0, kept), f64);
}

}  // namespace

void add_cross_entropy_cases(Cases& cases) {
  const auto row = [&](const std::string& name, const CrossEntropyOptions& options) {
    cases.add(name, [&](Case& c) {
      c.input("logits", {2, 3, 5});
      c.not_empty = {5};
      c.value = [=](const Inputs& in) {
        return cross_entropy(in["logits"], targets_for(in["logits"], options.ignore_index), options).loss;
      };
      c.oracle = [=](const Inputs& in) {
        return loss_by_rows(in["logits"], targets_for(in["logits"], options.ignore_index), options);
      };
      c.composed = [=](const Inputs& in) {
        return composed::cross_entropy(in["logits"], targets_for(in["logits"], options.ignore_index), options)
            .loss;
      };
      c.kernel = Kernel::cross_entropy;
      c.backward_kernel = Kernel::cross_entropy_backward;
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
    });
  };
  for (const std::optional<std::int64_t> ignored : {std::optional<std::int64_t>(), {-100}, {2}}) {
    const std::string suffix = ignored ? fmt::format(", ignoring {}", *ignored) : "";
    row("cross_entropy" + suffix, {.ignore_index = ignored});
    row("cross_entropy, summed" + suffix, {.ignore_index = ignored, .reduction = Reduction::sum});
    row("cross_entropy, by row" + suffix, {.ignore_index = ignored, .reduction = Reduction::none});
  }

  cases.add("cross_entropy, extremes", [](Case& c) {
    c.input("logits", {37});
    c.fixed_sizes = {37};
    c.value = [](const Inputs& in) {
      return cross_entropy(in["logits"], Indices({}, std::vector<std::int64_t>{31})).loss;
    };
    c.oracle = [](const Inputs& in) {
      return loss_by_rows(in["logits"], Indices({}, std::vector<std::int64_t>{31}), {});
    };
    const auto of = [](const Indices& targets, const CrossEntropyOptions& options) {
      return [=](const Inputs& in) { return cross_entropy(in["logits"], targets, options).loss; };
    };
    c.special({.name = "all ignored",
               .inputs = {{"logits", tensor({{1, 2}, {3, 4}}, f64)}},
               .value = {0},
               .cotangent = {3},
               .gradients = {{"logits", {0, 0, 0, 0}}},
               .of = of({-1, -1}, {.ignore_index = -1})});
    c.special({.name = "equal logits, one masked",
               .inputs = {{"logits", tensor({{0, 0, -infinity}}, f64)}},
               .value = {std::log(2.0)},
               .cotangent = {4},
               .gradients = {{"logits", {2, -2, 0}}},
               .of = of({1}, {})});
    c.special({.name = "large logits",
               .inputs = {{"logits", tensor({{1e8, 1e8}, {-1e8, -1e8}}, f64)}},
               .value = {std::log(2.0)},
               .cotangent = {4},
               .gradients = {{"logits", {-1, 1, 1, -1}}},
               .of = of({0, 1}, {})});
    c.special({.name = "a row in which nothing is possible",
               .inputs = {{"logits", tensor({{-infinity, -infinity}, {0, 0}}, f64)}},
               .value = {infinity, std::log(2.0)},
               .cotangent = {3, 4},
               .gradients = {{"logits", {0, 0, 2, -2}}},
               .of = of({0, 1}, {.reduction = Reduction::none})});
    c.special({.name = "NaN in a row that is ignored",
               .inputs = {{"logits", tensor({{std::nan(""), 1}, {0, 0}}, f64)}},
               .value = {std::log(2.0)},
               .gradients = {{"logits", {0, 0, -0.5, 0.5}}},
               .of = of({-1, 0}, {.ignore_index = -1})});
  });
}

}  // namespace fovea
