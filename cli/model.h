#pragma once

#include <cstdint>
#include <filesystem>
#include <variant>

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/gpt.h"
#include "fovea/layers/one_head_model.h"
#include "fovea/layers/visit.h"
#include "fovea/train/loop/recipe.h"

namespace fovea::cli {

/// The model of a run, of the kind that its recipe names. Its tensors have the same names as in that model.
///
/// Shapes: ids (B, T) -> logits (B, T, V).
struct Model {
  std::variant<OneHeadModel, Gpt> network;

  Model(const Recipe& recipe, std::int64_t vocabulary, std::int64_t context, Rng& rng);

  Tensor operator()(const Indices& ids) const;

  static void visit(const Model& self, Visitor& v) {
    std::visit([&]<class Chosen>(const Chosen& chosen) { Chosen::visit(chosen, v); }, self.network);
  }
};

/// Looks whether a checkpoint holds a model of these sizes, before memory is taken for it: settings and files
/// may say anything. Throws: FileError.
void check_model_sizes(const Recipe& recipe, std::int64_t vocabulary, std::int64_t context,
                       const std::filesystem::path& checkpoint);

}  // namespace fovea::cli
