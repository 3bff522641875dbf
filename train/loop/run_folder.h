#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "fovea/layers/state.h"
#include "fovea/train/io/safetensors.h"
#include "train/io/file.h"

namespace fovea::detail {

/// The checkpoints step-*.safetensors in a run's folder, in the order of their steps.
std::vector<std::filesystem::path> numbered_checkpoints(const std::filesystem::path& folder);
std::filesystem::path best_checkpoint_path(const std::filesystem::path& folder);

/// The folder of a run, locked while this object lives, so that no other Run writes there. The system
/// releases the lock however the program ends. All errors are FileErrors.
class RunFolder {
 public:
  /// Makes the folder if there is none, locks it, and removes the temporary files of killed programs.
  /// `keep_checkpoints`: how many numbered checkpoints are kept.
  /// Throws: FileError if another Run holds the lock.
  RunFolder(std::filesystem::path folder, std::int64_t keep_checkpoints);

  const std::filesystem::path& path() const { return path_; }

  /// Writes the checkpoint of a step, then removes old ones.
  void save(std::int64_t step, const State& state, const Metadata& metadata) const;
  void save_best(const State& state, const Metadata& metadata) const;

  /// Flushes the names of new files to the disk.
  void sync() const;

  /// Removes the oldest numbered checkpoints beyond `keep_checkpoints`. `save` does so, too; a run that was
  /// killed between saving and removing does it when it is resumed.
  void remove_old_checkpoints() const;

 private:
  std::filesystem::path path_;
  std::int64_t keep_checkpoints_;
  Descriptor lock_;
};

}  // namespace fovea::detail
