#pragma once

#include "fovea/autograd/base/rng.h"
#include "fovea/layers/transformer_block.h"

namespace fovea {

/// The model with larger embeddings and weights than it is initialised with. Attention is then far from
/// uniform, and gradients of the scores are not lost in rounding.
template <class Model>
Model with_larger_weights(Model model, Rng& rng) {
  model.token_embedding.table = parameter(30.0 * model.token_embedding.table);
  for (TransformerBlock& block : model.blocks) block.initialise(0.5, 0.3, rng);
  return model;
}

}  // namespace fovea
