#pragma once

#include <filesystem>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/layers/gpt.h"
#include "fovea/layers/state.h"
#include "fovea/train/io/safetensors.h"

/// Reading the checkpoints that a Run writes. A checkpoint is a safetensors file with the tensors of a
/// Trainer: "model.W", "optimizer.W.m" and, if weights are averaged, "average.W.average". Its metadata hold
/// `RunOptions::metadata` and, for resuming, "fovea.trainer" (the TrainerStatus as JSON) and
/// "fovea.log_sizes" (the sizes of the logs when it was saved).
namespace fovea {

/// The checkpoint of the latest step in a run's folder; nothing if there is none.
FOVEA_API std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// The checkpoint with the lowest evaluation loss; nothing if there is none.
FOVEA_API std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& folder);

struct LoadModelOptions {
  bool average = false;  ///< load averaged weights where the checkpoint has them, instead of the last weights
};

/// The model's tensors in a checkpoint. Throws: ValueError if there are none.
FOVEA_API State model_state(const SafetensorsFile& checkpoint, const LoadModelOptions& options = {});

/// Loads a model from a checkpoint of its run.
/// Throws: as model_state, `load_safetensors` and `load`; the model is then unchanged.
template <Layer L>
void load_model(L& model, const SafetensorsFile& checkpoint, const LoadModelOptions& options = {}) {
  load(model, model_state(checkpoint, options));
}
template <Layer L>
void load_model(L& model, const std::filesystem::path& checkpoint, const LoadModelOptions& options = {}) {
  load_model(model, load_safetensors(checkpoint), options);
}

/// Makes the Gpt that was saved, with the options that it was made with, and loads it. The path is the folder
/// of a run, whose latest checkpoint counts, a checkpoint of a run, or a file of `save_safetensors(path,
/// state(gpt))`. Throws: FileError if there is no such file, or it does not say which Gpt it holds, or its
/// tensors have not the sizes that it says; otherwise as `load_model`.
FOVEA_API Gpt load_gpt(const std::filesystem::path& run_or_file, const LoadModelOptions& options = {});

}  // namespace fovea
