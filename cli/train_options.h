#pragma once

#include <optional>
#include <string>

#include "cli/settings.h"

namespace CLI {
class Option;
}

/// The options of `fovea train`, one function for each group of the help text. Each option writes one field
/// of the settings, and is called the same in a file of settings.
namespace fovea::cli {

void add_data_options(CLI::App& parser, Settings& settings);
void add_model_options(CLI::App& parser, Settings& settings);
void add_training_options(CLI::App& parser, Settings& settings);
void add_run_options(CLI::App& parser, Settings& settings);

/// Whether an option has no effect on the model that the settings describe, and if so, why.
std::optional<std::string> without_effect(const CLI::Option& option, const Settings& settings);

}  // namespace fovea::cli
