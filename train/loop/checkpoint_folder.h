#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "fovea/layers/state.h"
#include "fovea/train/io/safetensors.h"

namespace fovea::detail {

/// The checkpoints step-*.safetensors in a run's folder, in the order of their steps.
/// Throws: FileError if one of them, or their folder, is a link or something else than its name says.
std::vector<std::filesystem::path> numbered_checkpoints(const std::filesystem::path& run);
std::filesystem::path best_checkpoint_path(const std::filesystem::path& run);

/// The checkpoints of a run that is being written. All errors are FileErrors.
class CheckpointFolder {
 public:
  /// Makes the folder of the checkpoints in that of the run, and removes the temporary files of killed
  /// programs. `keep`: how many numbered checkpoints are kept.
  CheckpointFolder(std::filesystem::path run, std::int64_t keep);

  /// Writes the checkpoint of a step, then removes old ones.
  void save(std::int64_t step, const State& state, const Metadata& metadata) const;
  void save_best(const State& state, const Metadata& metadata) const;

  /// Removes the oldest numbered checkpoints beyond those that are kept. `save` does so, too; a run that was
  /// killed between saving and removing does it when it is resumed.
  void remove_old() const;

 private:
  std::filesystem::path run_;
  std::int64_t keep_;
};

}  // namespace fovea::detail
