#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model.h"
#include "cli/settings.h"
#include "fovea/train/io/safetensors.h"

namespace fovea::cli {

/// A run's folder, opened to use its model.
struct Run {
  Settings settings;
  std::filesystem::path checkpoint;  ///< where the weights are from
  Metadata metadata;
  Model model;
  std::int64_t context = 0;
};

/// Loads the last checkpoint of a run, or the one with the lowest validation loss, with averaged weights if
/// the run has them. Throws: FileError if the folder is no run, or has no such checkpoint.
Run open_run(const std::filesystem::path& folder, bool best);

/// The words of a run.
struct Language {
  std::function<std::vector<std::int64_t>(std::string_view)> encode;  ///< with what stands before any text
  std::function<std::string(std::int64_t id)> decode;
  std::optional<std::int64_t> stop;  ///< the token that ends what the model writes
};
Language language_of(const Run& run);

}  // namespace fovea::cli
