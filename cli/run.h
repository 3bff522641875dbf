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

/// A trained model, loaded from the folder of its run.
struct LoadedRun {
  Settings settings;
  std::filesystem::path checkpoint;  ///< the file that the weights are from
  Metadata metadata;
  Model model;
  std::int64_t context = 0;
};

/// Loads the weights in a checkpoint, averaged ones if there are any. Throws: FileError, in a sentence, if
/// the model is another one.
void load_weights(Model& model, const SafetensorsFile& file, const std::filesystem::path& checkpoint);

/// Loads the latest checkpoint of a run, or the one with the lowest validation loss; with averaged weights if
/// the run has them. Throws: FileError if the folder is not a run, or has no such checkpoint.
LoadedRun load_run(const std::filesystem::path& folder, bool best);

/// How prompts become token ids and token ids become text.
struct Language {
  /// The ids of a prompt, preceded by the token that begins every sequence, if the run has one.
  std::function<std::vector<std::int64_t>(std::string_view)> encode;
  std::function<std::string(std::int64_t id)> decode;
  std::optional<std::int64_t> stop;  ///< the token after which generation ends
};
Language language_of(const LoadedRun& run);

}  // namespace fovea::cli
