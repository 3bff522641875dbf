#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fovea/autograd/base/parallel.h"
#include "fovea/train/loop/recipe.h"

namespace CLI {
class App;
}

namespace fovea::cli {

/// What `fovea train` is asked for: by its options, by a file of settings, or by the run that it resumes.
struct Settings {
  std::string task = "agreement";  ///< unless there is a text
  std::string text;
  bool lines = false;
  double validation = 0.1;
  std::string tokenizer = "characters";
  std::int64_t merges = 512;
  std::int64_t context = 64;  ///< of a text; a task or lines have their own

  Recipe recipe;
  std::uint64_t seed = 1;
  double skip_outliers = 0;

  std::int64_t evaluate_every = 500;
  std::int64_t patience = 0;
  std::int64_t checkpoint_every = 500;
  std::int64_t keep = 2;
  std::int64_t max_tokens = 0;

  std::string run;
  std::string resume;
  double minutes = 0;
  int threads = fovea::threads();
};

/// Adds all options, with the settings as they are for defaults. Those that a run's results depend on are
/// `configurable` in CLI11's words: they are what its file of settings holds.
void add_options(CLI::App& parser, Settings& settings);

/// The command's arguments, after its own name, with those from a file (--config, or that of the run to
/// --resume) put in front, so that options count more. Changes the settings to what the named task or text
/// recommends.
/// Throws: FileError; ValueError for what the file sets and the program does not know.
std::vector<std::string> prepare(const std::vector<std::string>& arguments, Settings& settings);

/// Throws: ValueError for options that a run to be resumed has settled already.
void check_resumable(const CLI::App& parser, const std::vector<std::string>& arguments);

/// The settings of a run, as its file has them. Throws: FileError if there is none.
Settings settings_of_run(const std::filesystem::path& run);

/// The file of settings in a run's folder.
inline constexpr const char* settings_file = "config.toml";

}  // namespace fovea::cli
