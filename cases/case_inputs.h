#pragma once

#include <span>
#include <string>
#include <vector>

#include "cases/cases.h"
#include "fovea/autograd/graph/graph.h"

// The inputs of a case: drawn, and laid out in memory in every way that an op may meet.
namespace fovea::cases {

/// How an op's input lies in memory: the leaf that stores it, and the view of the leaf that the op is given.
/// What the op sees has the same shape in every layout.
struct Layout {
  const char* name;
  Tensor (*store)(const Tensor& x);
  Tensor (*view)(const Tensor& leaf, const Shape& shape);
};

/// Which layout each input of a row gets: the same for all, or one after the other.
struct Arrangement {
  std::string name;
  std::size_t first = 0;
  std::size_t step = 0;
  const Layout& of(std::size_t input) const;
};

/// Every arrangement that makes a difference for so many inputs. The first is that of `contiguous`.
std::vector<Arrangement> arrangements(std::size_t inputs);
const Arrangement& contiguous_arrangement();

/// An axis, named by its size, that is given another size.
struct Resize {
  std::int64_t from = -1;
  std::int64_t to = -1;
  Shape operator()(Shape shape) const;
};

/// Distinct numbers that f32 can hold, as f64.
std::vector<NamedTensor> draw(const Case& row, std::uint64_t seed, const Resize& resize = {});

/// A cotangent for y: normal, numbers that f32 can hold.
Tensor random_cotangent(const Tensor& y);

/// The leaves of one arrangement, and what the op sees of them.
struct Arranged {
  std::vector<NamedTensor> leaves;

  Arranged(const std::vector<NamedTensor>& drawn, const Arrangement& arrangement, Dtype dtype);

  Inputs view() const { return view(leaves); }
  Inputs view(std::span<const NamedTensor> stored) const;

  /// Makes all leaves require a gradient, and returns them.
  std::vector<Tensor> targets();
  /// The gradient of every leaf, for a random cotangent.
  std::vector<Tensor> gradients(const NamedFunction& f, bool create_graph = false);

 private:
  std::vector<Shape> shapes_;
  Arrangement arrangement_;
};

}  // namespace fovea::cases
