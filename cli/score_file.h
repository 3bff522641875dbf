#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fovea/train/tasks/task.h"

/// The file in a run's folder that keeps what its model scored on its task.
namespace fovea::cli {

inline constexpr const char* score_file = "score.json";

/// A metric of a task, as it was measured.
struct ScoreEntry {
  std::string name;
  double value = 0;
  bool reached = false;  ///< whether the value is as good as the task asks for
};

/// The text of the file: a JSON list of metrics.
std::string score_text(const std::vector<Metric>& metrics);

/// Reads the file in a run's folder; empty if there is none. Throws: FileError if it is not such a list.
std::vector<ScoreEntry> read_score(const std::filesystem::path& run);

}  // namespace fovea::cli
