#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cases/cases.h"

namespace fovea {
namespace {

Tensor reduced(const std::vector<double>& losses, const Shape& shape, Reduction reduction) {
  if (reduction == Reduction::none) return from_values(losses, shape, f64);
  const double total = std::accumulate(losses.begin(), losses.end(), 0.0);
  if (reduction == Reduction::sum) return scalar(total, f64);
  return scalar(total / std::max(1.0, static_cast<double>(losses.size())), f64);
}

std::string suffix_of(Reduction reduction) {
  return reduction == Reduction::mean ? "" : reduction == Reduction::sum ? ", summed" : ", by element";
}

// -p y log s - (1 - y) log(1 - s) for every element, where s is the sigmoid of the logit and p its weight.
Tensor binary_by_elements(const Tensor& logits, const Tensor& targets, const Tensor& weights,
                          Reduction reduction) {
  std::vector<double> losses = logits.to_vector();
  const std::vector<double> y = targets.to_vector(), p = broadcast_to(weights, logits.shape()).to_vector();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double s = 1 / (1 + std::exp(-losses[i]));
    losses[i] = -p[i] * y[i] * std::log(s) - (1 - y[i]) * std::log(1 - s);
  }
  return reduced(losses, logits.shape(), reduction);
}

void add_binary_cross_entropy(Cases& cases, Reduction reduction, bool weighted) {
  const std::string name = "binary_cross_entropy_with_logits";
  cases.add(name + (weighted ? ", weighted" : "") + suffix_of(reduction), [=](Case& c) {
    c.input("logits", {3, 5});
    c.input("targets", {3, 5}, {0.1, 0.9});
    if (weighted) c.input("pos_weight", {5}, positive);
    c.value = [=](const Inputs& in) {
      return binary_cross_entropy_with_logits(
          in["logits"], in["targets"],
          {.pos_weight = weighted ? in["pos_weight"] : Tensor(), .reduction = reduction});
    };
    c.oracle = [=](const Inputs& in) {
      return binary_by_elements(in["logits"], in["targets"], weighted ? in["pos_weight"] : scalar(1, f64),
                                reduction);
    };
    c.refuses<ShapeError>("targets that would be broadcast", "[" + name + "] logits and targets differ",
                          [](const Inputs&) {
                            return binary_cross_entropy_with_logits(zeros({3, 5}), zeros({5}));
                          });
    c.refuses<ShapeError>("weights wider than the logits", "[" + name + "] pos_weight", [](const Inputs&) {
      return binary_cross_entropy_with_logits(zeros({5}), zeros({5}), {.pos_weight = ones({3, 5})});
    });
  });
}

void add_mean_squared_error(Cases& cases, Reduction reduction) {
  cases.add("mean_squared_error" + suffix_of(reduction), [=](Case& c) {
    c.input("prediction", {3, 5});
    c.input("target", {3, 5});
    c.value = [=](const Inputs& in) { return mean_squared_error(in["prediction"], in["target"], reduction); };
    c.oracle = [=](const Inputs& in) {
      const Tensor squares =
          map_elements(in["prediction"], in["target"], [](double a, double b) { return (a - b) * (a - b); });
      return reduced(squares.to_vector(), squares.shape(), reduction);
    };
    c.refuses<ShapeError>("a target that would be broadcast", "[mean_squared_error] prediction and target",
                          [](const Inputs&) {
                            return mean_squared_error(zeros({3, 1}), zeros({3}));
                          });
  });
}

}  // namespace

void add_losses_cases(Cases& cases) {
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    for (const bool weighted : {false, true}) add_binary_cross_entropy(cases, reduction, weighted);
    add_mean_squared_error(cases, reduction);
  }
  cases.add("binary_cross_entropy_with_logits, large logits", [](Case& c) {
    c.input("logits", {4});
    c.fixed_sizes = {4};
    const auto with = [](const Tensor& logits) {
      const Tensor targets = from_values(std::vector<double>{0, 0, 1, 1}, {4}, logits.dtype());
      return binary_cross_entropy_with_logits(logits, targets, {.reduction = Reduction::none});
    };
    c.value = [=](const Inputs& in) { return with(in["logits"]); };
    c.oracle = [](const Inputs& in) {
      return binary_by_elements(in["logits"], tensor({0, 0, 1, 1}, f64), scalar(1, f64), Reduction::none);
    };
    c.example({.name = "no overflow",
               .inputs = {{"logits", tensor({-1e4, 1e4, -1e4, 1e4}, f64)}},
               .value = {0, 1e4, 1e4, 0},
               .gradients = {{"logits", {0, 1, -1, 0}}}});
  });
}

}  // namespace fovea
