#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

/// Files of settings, in TOML (https://toml.io): one `name = value` a line, without sections. The library
/// that reads and writes TOML is used in settings_file.cpp alone.
namespace fovea::cli {

/// An entry of a file. Its value is written as on the command line: numbers in decimal, texts without quotes.
struct SettingsEntry {
  std::string name;
  ValueKind kind = ValueKind::text;
  std::string value;
  std::int64_t line = 0;
};

/// Reads the entries in the order of their lines.
/// Throws: FileError if the file can't be read; ValueError, with the line, if it is not TOML, sets a name
/// twice, has a section, or a value of another kind, such as a list or a number in hexadecimal.
std::vector<SettingsEntry> read_settings_file(const std::filesystem::path& file);

/// Throws ValueError: "FILE: what is wrong (line N)".
[[noreturn]] void refuse_setting(const std::filesystem::path& file, std::int64_t line,
                                 const std::string& what);

/// The line that `read_settings_file` reads as an entry. Throws: ValueError for a text that is not UTF-8.
std::string settings_line(const std::string& name, ValueKind kind, const std::string& value);

}  // namespace fovea::cli
