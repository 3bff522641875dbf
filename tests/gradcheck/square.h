#pragma once

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/gradcheck.h"

// The function x^2 with a rule that a test chooses, and a random input for it.
namespace fovea {

inline Tensor random(const Shape& shape, std::uint64_t seed = 3) {
  Rng rng(seed);
  return randn(shape, rng, f64);
}

// x^2 recorded with the given rule: (x, dy) -> gradient.
template <class Rule>
Tensor square_with_rule(const Tensor& x, Rule rule) {
  return record("square", (x * x).detach(), {x}, {x},
                [rule](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                  return {rule(saved[0], dy)};
                });
}

template <class Rule>
GradcheckReport check_rule(const Shape& shape, Rule rule, const GradcheckOptions& options = {}) {
  return gradcheck([&](const Tensor& x) { return square_with_rule(x, rule); }, random(shape), options);
}

}  // namespace fovea
