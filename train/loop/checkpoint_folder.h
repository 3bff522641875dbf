#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "fovea/layers/state.h"
#include "fovea/train/io/safetensors.h"
#include "train/io/file.h"

namespace fovea::detail {

/// The paths of a run's checkpoints, without the best, from the first step to the last.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);
std::filesystem::path best_checkpoint_path(const std::filesystem::path& folder);

/// A run's folder in the hands of the one trainer that writes there. Errors are FileErrors.
class CheckpointFolder {
 public:
  /// Makes the folder, where there is none, and takes it. `keep`: how many checkpoints stay, besides the
  /// best. Throws: FileError if another trainer has it.
  CheckpointFolder(std::filesystem::path folder, std::int64_t keep);

  /// Writes the checkpoint of a step, then removes those that are too many.
  void save(std::int64_t step, const State& state, const Metadata& metadata) const;
  void save_best(const State& state, const Metadata& metadata) const;

  /// Flushes the names of new files to the disk.
  void sync() const;

 private:
  void remove_old() const;

  std::filesystem::path path_;
  std::int64_t keep_;
  Descriptor lock_;  // held until it is closed, by whatever end of the program
};

}  // namespace fovea::detail
