#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/gradcheck/gradcheck.h"
#include "gradcheck/richardson.h"

// One function against finite differences.
namespace fovea::detail {

/// Random, but of either sign and not near 0, so that no element of an output goes unseen.
Tensor random_weights(const Shape& shape, Rng& rng);

/// All elements of several tensors, one after the other.
std::vector<double> flatten(const std::vector<Tensor>& tensors);

/// Of the magnitudes that are finite; 0 if there are none.
double largest_of(std::span<const double> values);

/// Where an element, in row-major order, is.
Shape position_of(std::int64_t element, const Shape& shape);

/// Whether an option such as "table[0, 2]" is about this element of that tensor.
class Excluded {
 public:
  /// Throws: ValueError for what is no name with indices, or names no element of any tensor.
  Excluded(const std::vector<std::string>& names, const std::vector<NamedTensor>& tensors);
  bool operator()(const std::string& tensor, const Shape& index) const;

 private:
  struct Entry {
    std::string tensor;
    Shape leading;
  };
  std::vector<Entry> entries_;
};

/// What is compared at one order: some tensors as a function of the inputs, contracted with fixed weights.
struct Comparison {
  int order = 1;
  std::vector<NamedTensor> inputs;  // f64 leaves, moved in place
  // differentiable: so that a gradient can be taken of them, not for their numbers alone.
  std::function<std::vector<Tensor>(bool differentiable)> values;
  std::vector<Tensor> weights = {};  // one for each value
  std::vector<double> noise = {};    // how far rounding may put each element of the values off; none: 0
  std::optional<Shape> output = {};  // which element the weights pick, in Jacobian mode

  /// Adds what it finds to the report: one TensorCheck for each input, elements that don't pass. Returns the
  /// noise of the gradients, element by element.
  std::vector<double> run(const GradcheckOptions& options, const Excluded& excluded, Rng& rng,
                          GradcheckReport& report) const;

 private:
  using GradientsFor = std::function<std::vector<Tensor>(const std::vector<Tensor>& cotangents)>;
  // How far the gradients are, element by element, from linear in cotangents that move by a few roundings.
  std::vector<double> noise_of(const GradientsFor& gradients, const std::vector<double>& analytic,
                               Rng& rng) const;
};

}  // namespace fovea::detail
