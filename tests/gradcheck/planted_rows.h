#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "tests/gradcheck/rows.h"

// What rows with planted bugs are made of.
namespace fovea {

using MakeInputs = std::function<Inputs(Rng&)>;

inline MakeInputs normal(std::vector<std::pair<std::string, Shape>> shapes) {
  return [shapes](Rng& rng) {
    std::vector<NamedTensor> inputs;
    for (const auto& [name, shape] : shapes) inputs.push_back({name, randn(shape, rng, f64)});
    return Inputs(inputs);
  };
}

inline MakeInputs one(const Shape& shape) { return normal({{"x", shape}}); }

// The value, recorded with the given rule: (saved inputs, dy) -> gradients. The rule alone connects it to the
// inputs.
template <class Rule>
Tensor with_rule(const Tensor& value, TensorList inputs, Rule rule) {
  return record("planted", value.detach(), inputs, inputs,
                [rule](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return rule(saved, dy);
                });
}

// x^2 with the given rule: (x, dy) -> gradient.
template <class Rule>
NamedFunction square(Rule rule) {
  return [rule](const Inputs& in) {
    const Tensor& x = in["x"];
    return with_rule(x * x, {x}, [rule](const Saved& saved, const Tensor& dy) -> Gradients {
      return {rule(saved[0], dy)};
    });
  };
}

template <class Rule>
NamedFunction unary(Tensor (*value)(const Tensor&), Rule rule) {
  return [=](const Inputs& in) {
    const Tensor& x = in["x"];
    return with_rule(value(x), {x}, [rule](const Saved& saved, const Tensor& dy) -> Gradients {
      return {rule(saved[0], dy)};
    });
  };
}

inline Tensor softmax_of_rows(const Tensor& x) { return softmax(x); }

class Rows {
 public:
  void wrong(const std::string& name, NamedFunction f, MakeInputs inputs, const std::string& hint = "") {
    add({name, std::move(f), std::move(inputs), {}, "wrong", hint});
  }
  void wrong_at_order_2(const std::string& name, NamedFunction f, MakeInputs inputs) {
    add({name, std::move(f), std::move(inputs), {.order = 2}, "wrong"});
  }
  void otherwise(const std::string& verdict, const std::string& name, NamedFunction f, MakeInputs inputs) {
    add({name, std::move(f), std::move(inputs), {}, verdict});
  }
  std::vector<GradcheckRow> take() { return std::move(rows_); }

 private:
  void add(GradcheckRow row) { rows_.push_back(std::move(row)); }
  std::vector<GradcheckRow> rows_;
};

// Bugs whose gradient is wrong in its factors or places, and those that lose a term, a value or a verdict.
void add_wrong_factors_and_places(Rows& rows);
void add_lost_terms_and_values(Rows& rows);

}  // namespace fovea
