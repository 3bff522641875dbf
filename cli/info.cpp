#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "autograd/base/columns.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/shape.h"
#include "fovea/train/io/safetensors.h"
#include "fovea/train/loop/checkpoints.h"

namespace fovea::cli {
namespace {

using detail::column_count;
using detail::fitted;
using detail::padded;
using detail::printable;

// The file to show: of a run's folder, its last checkpoint.
std::filesystem::path file_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const auto latest = latest_checkpoint(path);
  if (!latest) throw FileError(fmt::format("{}: there is no checkpoint in this folder", path.string()));
  return *latest;
}

// The columns that a name may take. A longer one is shortened, so that no name makes the lines of all others
// as long as itself.
constexpr std::size_t most_columns = 72;

// A text of the file as it is shown.
std::string shown(const std::string& text, std::size_t columns) {
  constexpr std::size_t longest_character = 4;
  return fitted(printable(text, longest_character * columns), columns);
}

int print_info(const std::string& path) {
  const std::filesystem::path file = file_of(path);
  SafetensorsHeader header = read_safetensors_header(file);
  // The tensors of the model come before those of its optimizer.
  std::stable_partition(header.entries.begin(), header.entries.end(),
                        [](const SafetensorsEntry& entry) { return !entry.name.starts_with("optimizer."); });
  std::size_t longest = 4;
  for (const SafetensorsEntry& entry : header.entries)
    longest = std::max(longest, column_count(shown(entry.name, most_columns)));

  fmt::print("{}\n\n{:<{}}  {:<5} {:<18} {:>12}\n", printable(file.string()), "name", longest, "dtype",
             "shape", "elements");
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::int64_t size = numel(entry.shape);
    fmt::print("{}  {:<5} {:<18} {:>12}\n", padded(shown(entry.name, most_columns), longest), entry.dtype,
               to_string(entry.shape), with_commas(size));
    elements += size;
    bytes += entry.end - entry.begin;
  }
  for (const Alias& alias : header.aliases)
    fmt::print("{}  is {}\n", padded(shown(alias.name, most_columns), longest),
               shown(alias.original, most_columns));
  fmt::print("\n{} tensors, {} elements, {} bytes\n", header.entries.size(), with_commas(elements),
             with_commas(static_cast<std::int64_t>(bytes)));

  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(width_of(stdout), 40));
  for (const auto& [key, value] : header.metadata) {
    const std::string name = padded(shown(key, most_columns), 10);
    fmt::print("{}\n", fitted(name + " " + shown(value, width), width));
  }
  return 0;
}

}  // namespace

Command info_command(CLI::App& program) {
  const auto path = std::make_shared<std::string>();
  CLI::App* parser = program.add_subcommand("info", "List the tensors and metadata in a file");
  parser
      ->add_option("file", *path,
                   "A safetensors file, or the folder of a run, whose last checkpoint is shown")
      ->required()
      ->type_name("FILE");
  return {parser, [path] { return print_info(*path); }};
}

}  // namespace fovea::cli
