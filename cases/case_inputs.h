#pragma once

#include <span>
#include <string>
#include <vector>

#include "cases/cases.h"
#include "fovea/autograd/graph/graph.h"

// Draws the inputs of a case, and lays them out in memory in every way that an op may meet.
namespace fovea::cases {

/// How an op's input lies in memory: `store` makes the leaf that holds the numbers of x, and `view` the view
/// of that leaf which the op is given. The view has the shape of x in every layout.
struct Layout {
  const char* name;
  Tensor (*store)(const Tensor& x);
  Tensor (*view)(const Tensor& leaf, const Shape& shape);
};

/// The layout of each input of a row: input i has layout number first + i * step.
struct Arrangement {
  std::string name;
  std::size_t first = 0;
  std::size_t step = 0;
  const Layout& of(std::size_t input) const;
};

/// The arrangements in which a row with that many inputs is checked. The first is contiguous_arrangement().
std::vector<Arrangement> arrangements(std::size_t inputs);
const Arrangement& contiguous_arrangement();

/// Replaces the axes of size `from` by axes of size `to`.
struct Resize {
  std::int64_t from = -1;
  std::int64_t to = -1;
  Shape operator()(Shape shape) const;
};

/// Draws the inputs of a row, as f64: distinct numbers that f32 can represent.
std::vector<NamedTensor> draw(const Case& row, std::uint64_t seed, const Resize& resize = {});

/// A cotangent for y with normally distributed elements that f32 can represent.
Tensor random_cotangent(const Tensor& y);

/// The inputs of a row in one arrangement: leaves that store them, and the views that the op is given.
struct Arranged {
  std::vector<NamedTensor> leaves;

  Arranged(const std::vector<NamedTensor>& drawn, const Arrangement& arrangement, Dtype dtype);

  Inputs view() const { return view(leaves); }
  Inputs view(std::span<const NamedTensor> stored) const;

  /// Makes all leaves require a gradient, and returns them.
  std::vector<Tensor> targets();
  /// The gradient of f with respect to every leaf, for the random cotangent.
  std::vector<Tensor> gradients(const NamedFunction& f, bool create_graph = false);

 private:
  std::vector<Shape> shapes_;
  Arrangement arrangement_;
};

}  // namespace fovea::cases
