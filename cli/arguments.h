#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fovea::cli {

/// Prepares the words of a command line for CLI11, which by itself gives an option with an empty value, such
/// as `--prompt=`, the next word as value.
///
/// Throws: ValueError for a command or an option that there is not, with the most similar one; for an option
/// without a value, also where another option follows instead; and for a word too many.
std::vector<std::string> prepared_arguments(CLI::App& program, std::vector<std::string> words);

}  // namespace fovea::cli
