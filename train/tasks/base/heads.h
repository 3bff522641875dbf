#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/autograd/tensor/tensor.h"

/// The heads of a model, found by what they attend to.
namespace fovea::detail {

/// A head, by its place in the model. Both numbers count from 0.
struct Head {
  std::int64_t layer = 0;
  std::int64_t head = 0;
};

/// The head in which a query attends most to a key; of equal ones the first.
/// Shapes: `maps` has one (B, H, T, T) per layer; the first sequence of the batch counts.
Head strongest_head(const std::vector<Tensor>& maps, std::int64_t query, std::int64_t key);

/// A head's map of the first sequence. Shapes: -> (T, T).
Tensor map_of(const std::vector<Tensor>& maps, const Head& head);

/// "head 2 of layer 0", or "the head" where the model has only one.
std::string name_of(const std::vector<Tensor>& maps, const Head& head);

}  // namespace fovea::detail
