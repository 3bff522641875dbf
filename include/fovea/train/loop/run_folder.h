#pragma once

#include <filesystem>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/layers/state.h"
#include "fovea/train/io/safetensors.h"

/// What a Trainer leaves in a run's folder:
///
///   checkpoints/step-00001000.safetensors   the last ones, of which the latest is what `resume` goes on from
///   checkpoints/best.safetensors            the one with the lowest loss of evaluation
///   log.jsonl, log.csv                      steps and evaluations
///   times.csv                               seconds and tokens per second
///   events.out.tfevents.fovea               the same for TensorBoard
///
/// A checkpoint has the tensors "model.W", "optimizer.W.m" and, where weights are averaged,
/// "average.W.average"; in its metadata stand `TrainerOptions::metadata` and, as "fovea.trainer", where the
/// run was.
namespace fovea {

/// The checkpoint of the latest step in a run's folder; nothing where there is none.
FOVEA_API std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// The checkpoint with the lowest loss of evaluation; nothing where there is none.
FOVEA_API std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& folder);

struct LoadModelOptions {
  bool average = false;  ///< averaged weights instead of the last ones, where the checkpoint has them
};

/// A model's part of a checkpoint. Throws: ValueError if there is none.
FOVEA_API State model_state(const SafetensorsFile& checkpoint, const LoadModelOptions& options = {});

/// Loads a model from a checkpoint of its run.
/// Throws: as model_state, `load_safetensors` and `load`. Nothing has been loaded then.
template <Layer L>
void load_model(L& model, const SafetensorsFile& checkpoint, const LoadModelOptions& options = {}) {
  load(model, model_state(checkpoint, options));
}
template <Layer L>
void load_model(L& model, const std::filesystem::path& checkpoint, const LoadModelOptions& options = {}) {
  load_model(model, load_safetensors(checkpoint), options);
}

}  // namespace fovea
