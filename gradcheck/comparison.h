#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/base/position.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/gradcheck/gradcheck.h"
#include "gradcheck/excluded.h"

// Compares the gradients of one function with finite differences.
namespace fovea::detail {

/// A random number of either sign that is not close to 0, so that what it multiplies is not lost.
double random_weight(Rng& rng);
Tensor random_weights(const Shape& shape, Rng& rng);

/// The elements of several tensors, one tensor after the other.
std::vector<double> flatten(const std::vector<Tensor>& tensors);

/// The largest finite magnitude, or 0 if there is none.
double largest_of(std::span<const double> values);

/// What is compared at one order: tensors as a function of the inputs, contracted with fixed weights. At
/// order 1 the tensor is the output of f, at order 2 the tensors are the gradients of f.
struct Comparison {
  int order = 1;
  std::vector<NamedTensor> inputs;  // f64 leaves, whose elements are moved in place
  // The tensors. `differentiable`: a gradient is taken of them, so they need a graph.
  std::function<std::vector<Tensor>(bool differentiable)> values;
  std::vector<Tensor> weights = {};  // one for each value
  std::vector<double> noise = {};    // how far rounding may put each element of the values off; empty for 0
  std::optional<Shape> output = {};  // the element that the weights select, in Jacobian mode

  /// Adds a TensorCheck for each input, and the elements that do not pass, to the report. Returns the noise
  /// of the gradients, element by element.
  std::vector<double> run(const GradcheckOptions& options, const Excluded& excluded, Rng& rng,
                          GradcheckReport& report) const;

 private:
  using GradientsFor = std::function<std::vector<Tensor>(const std::vector<Tensor>& cotangents)>;
  // How far rounding puts each element of the gradients off, measured with cotangents that are slightly
  // moved.
  std::vector<double> noise_of(const GradientsFor& gradients, const std::vector<double>& analytic,
                               Rng& rng) const;
};

}  // namespace fovea::detail
