#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/shape.h"
#include "fovea/layers/gpt.h"
#include "fovea/train/io/safetensors.h"

/// Settings and metadata say how large a model is, and nothing in them is trusted: before memory is taken for
/// the model, its sizes are compared with those of the tensors that its file holds.
namespace fovea::detail {

using Shapes = std::map<std::string, Shape>;

/// The shapes of the tensors in a checkpoint whose names begin with "model.", without that.
FOVEA_API Shapes model_shapes(const SafetensorsHeader& checkpoint);

/// Throws: FileError, whose text begins with `what`, such as "[load_gpt] 'x.safetensors'", if the tensors are
/// not those of a Gpt of this configuration.
FOVEA_API void check_gpt_sizes(const std::string& what, const GptConfig& config, const Shapes& tensors);

/// The same for a OneHeadModel.
FOVEA_API void check_one_head_sizes(const std::string& what, std::int64_t vocabulary, std::int64_t d_model,
                                    const Shapes& tensors);

}  // namespace fovea::detail
