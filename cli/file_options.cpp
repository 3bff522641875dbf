#include "cli/file_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "autograd/base/text.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "cli/settings_file.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/loop/checkpoints.h"
#include "train/io/file.h"

namespace fovea::cli {
namespace {

// What a file may set: what is saved with a run, and how long, where and on how many threads it runs.
bool is_setting(const CLI::Option& option) {
  const std::string name = option.get_name();
  return option.get_configurable() || name == "--run" || name == "--minutes" || name == "--threads";
}

// What a setting of a kind needs, and what an entry of a kind has.
const char* name_of_kind(ValueKind kind) {
  constexpr std::array names{"true or false", "a whole number", "a number", "a text in quotes"};
  return names.at(static_cast<std::size_t>(kind));
}
const char* name_of_entry(ValueKind kind) {
  return kind == ValueKind::number ? "a number with a decimal point" : name_of_kind(kind);
}

// A switch may be 1 or 0 too, as on the command line.
bool accepts(ValueKind wanted, ValueKind found) {
  const bool from_whole = wanted == ValueKind::number || wanted == ValueKind::boolean;
  return wanted == found || (from_whole && found == ValueKind::whole_number);
}

// A path in a file of settings starts from the folder of the file.
std::string located(const CLI::Option& option, const std::string& value,
                    const std::filesystem::path& folder) {
  if (option.get_name() == "--tokenizer") return tokenizer_in(folder, value);
  const bool is_path = option.get_type_name() == "FILE" || option.get_type_name() == "FOLDER";
  return is_path && !value.empty() ? (folder / value).string() : value;
}

CLI::Option& option_of(const SettingsEntry& entry, CLI::App& parser, const std::filesystem::path& file) {
  if (CLI::Option* option = parser.get_option_no_throw("--" + entry.name); option && is_setting(*option))
    return *option;
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    if (is_setting(*option)) names.push_back(option->get_name().substr(2));
  }
  refuse_setting(file, entry.line,
                 fmt::format("there is no setting \"{}\"{}", entry.name, did_you_mean(entry.name, names)));
}

// The value for an option, after the checks that a value on the command line goes through.
std::string checked_value(const SettingsEntry& entry, CLI::Option& option,
                          const std::filesystem::path& file) {
  const ValueKind wanted = kind_of(option);
  if (!accepts(wanted, entry.kind)) {
    refuse_setting(
        file, entry.line,
        fmt::format("{} needs {}, and has {}", entry.name, name_of_kind(wanted), name_of_entry(entry.kind)));
  }
  std::string value = located(option, entry.value, file.parent_path());
  if (const std::string fault = fault_of(option, value); !fault.empty()) {
    refuse_setting(file, entry.line, fmt::format("{}: {}", entry.name, fault));
  }
  return value;
}

// Gives each option that the command line leaves out the value of its entry in the file, if there is one. A
// task on the command line also takes the place of a text in the file, and a text that of a task.
void read_settings(const std::filesystem::path& file, CLI::App& parser, FromFile& from_file) {
  const bool task = is_given(parser, "--task"), text = is_given(parser, "--text");
  std::set<std::string> sources;
  for (const SettingsEntry& entry : read_settings_file(file)) {
    CLI::Option& option = option_of(entry, parser, file);
    const std::string value = checked_value(entry, option, file);
    if (entry.name == "task" || entry.name == "text") {
      sources.insert(entry.name);
      if (sources.size() == 2)
        refuse_setting(file, entry.line, "task and text exclude each other: set one of them");
      if (task || text) continue;
    }
    if (option.count() > 0) continue;
    option.add_result(value);
    from_file.insert(&option);
  }
}

std::filesystem::path file_of_run(const std::filesystem::path& run) {
  std::filesystem::path file = run / settings_file;
  detail::check_own_file("Run", file);
  if (std::filesystem::exists(file)) return file;
  throw FileError(
      fmt::format("{} is no run: there is no {} in it", detail::printable(run.string()), settings_file));
}

// A run is resumed with its settings, so the command line may have none of them, but for the place of its
// text and a larger number of steps.
void check_resumable(const CLI::App& parser) {
  for (const CLI::Option* option : parser.get_options()) {
    const std::string name = option->get_name();
    const bool is_fixed = option->get_configurable() || name == "--run" || name == "--config";
    if (option->count() > 0 && is_fixed && name != "--text" && name != "--steps") {
      throw ValueError(
          fmt::format("{} can't be changed: a run is resumed as it began. Begin another run with its weights "
                      "by --from RUN",
                      name));
    }
  }
}

// Only the fingerprint in a checkpoint tells whether a text is the one that the run began with.
void check_text_of_run(const CLI::App& parser, const std::string& run) {
  if (!is_given(parser, "--text")) return;
  if (settings_of_run(run).text.empty()) throw ValueError("--text: the run learns a task, and has no text");
  if (!latest_checkpoint(run)) {
    throw ValueError(
        "--text: the run has no checkpoint yet, by which its text could be recognised; start another run");
  }
}

}  // namespace

bool is_given(const CLI::App& parser, const char* name) { return parser.get_option(name)->count() > 0; }

// The folder of a tokenizer is distinguished from the name of a kind by being there.
std::string tokenizer_in(const std::filesystem::path& folder, const std::string& name) {
  const bool is_kind = std::ranges::find(tokenizer_kinds, name) != std::end(tokenizer_kinds);
  if (is_kind || !std::filesystem::is_directory(folder / name)) return name;
  return std::filesystem::absolute(folder / name).string();
}

void add_file_options(CLI::App& parser, Settings& settings, const std::shared_ptr<FromFile>& from_file) {
  const auto resume = [&, from_file](const std::string& run) {
    settings.resume = run;
    check_resumable(parser);
    check_text_of_run(parser, run);
    read_settings(file_of_run(run), parser, *from_file);
  };
  const auto branch = [&, from_file](const std::string& run) {
    if (!settings.resume.empty())
      throw ValueError("--from and --resume exclude each other: a run has one beginning");
    settings.from = run;
    read_settings(file_of_run(run), parser, *from_file);
  };
  const auto configure = [&, from_file](const std::string& file) { read_settings(file, parser, *from_file); };
  parser.option_defaults()->group("Settings");
  parser
      .add_option_function<std::string>(
          "--resume", resume,
          "Continue this run, with its settings; --text FILE tells where its text has moved, and --steps "
          "gives it more steps")
      ->type_name("RUN")
      ->check(not_empty())
      ->configurable(false);
  parser
      .add_option_function<std::string>(
          "--from", branch,
          "Begin with the weights and settings of this run; other options change its settings")
      ->type_name("RUN")
      ->check(not_empty())
      ->configurable(false);
  parser
      .add_option_function<std::string>("--config", configure,
                                        "Read settings from a TOML file; options override them")
      ->type_name("FILE")
      ->check(not_empty())
      ->configurable(false);
}

}  // namespace fovea::cli
