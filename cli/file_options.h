#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "cli/settings.h"

namespace CLI {
class Option;
}

/// The options of `fovea train` that read a file of settings: --resume and --config.
namespace fovea::cli {

/// The options whose values came from a file. They are not checked as strictly as those of the command line,
/// which may make an entry of a file useless.
using FromFile = std::set<const CLI::Option*>;

/// Adds the two options. When CLI11 runs them, each option that the command line leaves out gets the value of
/// its entry in the file, and becomes one of `from_file`. Parsing throws: FileError; ValueError for a wrong
/// entry, and for options that a resumed run can't take.
void add_file_options(CLI::App& parser, Settings& settings, const std::shared_ptr<FromFile>& from_file);

/// Whether an option has a value, from the command line or a file.
bool is_given(const CLI::App& parser, const char* name);

/// The name of a tokenizer, as settings have it: of a folder that is there, the whole path.
std::string tokenizer_in(const std::filesystem::path& folder, const std::string& name);

}  // namespace fovea::cli
