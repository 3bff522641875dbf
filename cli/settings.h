#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "fovea/autograd/base/parallel.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/loop/recipe.h"

namespace CLI {
class App;
}

namespace fovea::cli {

/// What `fovea train` is to do. The values come, in this order, from the recipe of the task or text, from a
/// file of settings (--config, or that of the run to resume), and from the command line.
struct Settings {
  std::string task = "agreement";  ///< ignored if there is a text
  std::string text;                ///< the whole path
  bool lines = false;
  double validation = 0.1;
  std::string tokenizer = "characters";  ///< one of `tokenizer_kinds`, or the whole path of a folder
  std::int64_t merges = 512;
  std::int64_t context = 64;  ///< of a text that is not split into lines; tasks and lines have their own

  Recipe recipe;
  RotaryOptions rotary;  ///< of the recipe's model, if its positions are rotary
  std::uint64_t seed = 1;
  double skip_loss_above_sigma = 0;

  std::int64_t evaluate_every = 500;
  std::int64_t patience = 0;
  std::int64_t checkpoint_every = 500;
  std::int64_t keep_checkpoints = 2;
  bool no_checkpoints = false;
  std::int64_t max_tokens = 0;

  std::string note;  ///< what the command line asked for and does not happen; empty if there is no such thing

  std::string run;
  std::string resume;
  std::string from;  ///< the run whose settings and weights this one begins with
  double minutes = 0;
  int threads = fovea::threads();
};

/// The tokenizers that are made from the text. Another name is that of a folder with a tokenizer.
inline constexpr std::array tokenizer_kinds{"characters", "bytes", "byte-pairs"};

/// Adds all options to a parser, which fills the settings when it parses. The defaults that it shows, and
/// writes to a run's file, are those of the task or text that was chosen.
/// Parsing throws: FileError; ValueError for a file of settings with a wrong entry, for options that exclude
/// each other or have no effect, and for one that can't be changed in a run that is resumed.
void add_options(CLI::App& parser, Settings& settings);

/// The file of settings of a run, after parsing: every setting that has an effect. Throws: ValueError for a
/// path that is not UTF-8.
std::string settings_text(const CLI::App& parser, const Settings& settings);

/// The settings of a run, from the file in its folder. Throws: FileError if there is none.
Settings settings_of_run(const std::filesystem::path& run);

/// The name of the file of settings in a run's folder.
inline constexpr const char* settings_file = "config.toml";

}  // namespace fovea::cli
