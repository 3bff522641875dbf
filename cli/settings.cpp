#include "cli/settings.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <vector>

#include "autograd/base/text.h"
#include "cli/nearest.h"
#include "cli/options.h"
#include "cli/settings_file.h"
#include "cli/train_options.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/loop/checkpoints.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {
namespace {

// --- Files of settings -----------------------------------------------------------------------------------

// The options whose values came from a file. They are not checked as strictly as those of the command line,
// which may make an entry of a file useless.
using FromFile = std::set<const CLI::Option*>;

CLI::Option* find_option(CLI::App& parser, const std::string& name) {
  return parser.get_option_no_throw("--" + name);
}

bool is_given(const CLI::App& parser, const char* name) { return parser.get_option(name)->count() > 0; }

// Options that are neither saved with a run nor help, but that a file may set.
bool is_setting(const CLI::Option& option) {
  const std::string name = option.get_name();
  return option.get_configurable() || name == "--run" || name == "--minutes" || name == "--threads";
}

// What a setting of a kind needs, and what an entry of a kind has.
const char* needed(ValueKind kind) {
  constexpr std::array names{"true or false", "a whole number", "a number", "a text in quotes"};
  return names.at(static_cast<std::size_t>(kind));
}
const char* found(ValueKind kind) {
  return kind == ValueKind::number ? "a number with a decimal point" : needed(kind);
}

// A switch may be 1 or 0 too, as on the command line.
bool accepts(ValueKind wanted, ValueKind found) {
  const bool from_whole = wanted == ValueKind::number || wanted == ValueKind::boolean;
  return wanted == found || (from_whole && found == ValueKind::whole_number);
}

// The folder of a tokenizer is distinguished from the name of a kind by being there.
std::string tokenizer_in(const std::filesystem::path& folder, const std::string& name) {
  const bool is_kind = std::ranges::find(tokenizer_kinds, name) != std::end(tokenizer_kinds);
  if (is_kind || !std::filesystem::is_directory(folder / name)) return name;
  return std::filesystem::absolute(folder / name).string();
}

// A path in a file of settings starts from the folder of the file.
std::string located(const CLI::Option& option, const std::string& value,
                    const std::filesystem::path& folder) {
  if (option.get_name() == "--tokenizer") return tokenizer_in(folder, value);
  const bool is_path = option.get_type_name() == "FILE" || option.get_type_name() == "FOLDER";
  return is_path && !value.empty() ? (folder / value).string() : value;
}

CLI::Option& option_of(const SettingsEntry& entry, CLI::App& parser, const std::filesystem::path& file) {
  if (CLI::Option* option = find_option(parser, entry.name); option && is_setting(*option)) return *option;
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
    refuse_setting(file, entry.line,
                   fmt::format("{} needs {}, and has {}", entry.name, needed(wanted), found(entry.kind)));
  }
  const std::string value = located(option, entry.value, file.parent_path());
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
  if (std::filesystem::exists(file)) return file;
  throw FileError(
      fmt::format("{} is no run: there is no {} in it", detail::printable(run.string()), settings_file));
}

// A run is resumed with its settings, so the command line may have none of them, but for the place of its
// text.
void check_resumable(const CLI::App& parser) {
  for (const CLI::Option* option : parser.get_options()) {
    const std::string name = option->get_name();
    const bool is_fixed = option->get_configurable() || name == "--run" || name == "--config";
    if (option->count() > 0 && is_fixed && name != "--text") {
      throw ValueError(
          fmt::format("{} can't be changed: a run is resumed as it began. Start another one instead", name));
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

void add_file_options(CLI::App& parser, Settings& settings, const std::shared_ptr<FromFile>& from_file) {
  const auto resume = [&, from_file](const std::string& run) {
    settings.resume = run;
    check_resumable(parser);
    check_text_of_run(parser, run);
    read_settings(file_of_run(run), parser, *from_file);
  };
  const auto configure = [&, from_file](const std::string& file) { read_settings(file, parser, *from_file); };
  parser.option_defaults()->group("Settings");
  parser
      .add_option_function<std::string>(
          "--resume", resume,
          "Continue this run, with its settings; --text FILE tells where its text has moved")
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

// --- What is recommended ---------------------------------------------------------------------------------

// For lines such as names: about 200,000 parameters, trained in a few minutes.
Recipe recipe_for_lines() {
  Recipe recipe;
  recipe.model.d_model = 64;
  recipe.model.block.mlp = MlpKind::swiglu;
  recipe.model.block.dropout = recipe.model.block.attention.dropout = 0.1;
  recipe.batch = 32;
  recipe.steps = 18000;
  recipe.learning_rate = 1.5e-3;
  recipe.final_learning_rate = 5e-5;
  recipe.warmup = 200;
  recipe.ema_decay = 0.999;
  return recipe;
}

Recipe recommended_recipe(const Settings& settings) {
  if (settings.text.empty()) return make_task(settings.task)->recipe();
  return settings.lines ? recipe_for_lines() : Recipe{};
}

// Takes over the recipe that is recommended for the task or text.
void recommend(Settings& settings) {
  settings.recipe = recommended_recipe(settings);
  settings.rotary = settings.recipe.model.block.attention.rotary.value_or(RotaryOptions{});
}

std::string check_task(const std::string& name) {
  const std::vector<std::string> known = task_names();
  if (std::ranges::find(known, name) != known.end()) return "";
  return fmt::format("there is no task \"{}\"; there is: {}", detail::printable(name, 80),
                     fmt::join(known, ", "));
}

void add_source_options(CLI::App& parser, Settings& settings) {
  parser.option_defaults()->group("Data");
  const auto choose_task = [&](const std::string& name) {
    settings.task = name;
    recommend(settings);
  };
  // A run may be resumed from another folder, so its settings have the whole path.
  const auto choose_text = [&](const std::string& path) {
    settings.text = std::filesystem::absolute(path).string();
    recommend(settings);
  };
  const auto add = [&](const char* name, const auto& choose, const std::string& shown, const char* help) {
    return show_default(parser.add_option_function<std::string>(name, choose, help),
                        [&shown = shown] { return shown; });
  };
  add("--task", choose_task, settings.task, "A task with a known answer: see fovea tasks")
      ->check(CLI::Validator(check_task, ""))
      ->type_name("NAME");
  add("--text", choose_text, settings.text, "A text file, or a file of token ids, to learn instead of a task")
      ->check(not_empty())
      ->type_name("FILE");
  add_switch(parser, "--lines", settings.lines,
             "Learn each line of the text by itself, such as a list of names", [&] { recommend(settings); });
}

// --- What follows from the options together --------------------------------------------------------------

// A shorter run warms up for a tenth of its steps at most, and another learning rate ends in the same
// proportion, unless the settings say otherwise.
void scale_recipe(const CLI::App& parser, Recipe& recipe, const Recipe& recommended) {
  if (is_given(parser, "--steps") && !is_given(parser, "--warmup"))
    recipe.warmup = std::min(recipe.warmup, recipe.steps / 10);
  if (is_given(parser, "--lr") && !is_given(parser, "--final-lr")) {
    recipe.final_learning_rate =
        recipe.learning_rate * (recommended.final_learning_rate / recommended.learning_rate);
  }
}

void check_effects(const CLI::App& parser, const Settings& settings, const FromFile& from_file) {
  if (is_given(parser, "--task") && is_given(parser, "--text")) {
    throw ValueError("--task and --text exclude each other: a run learns one of them");
  }
  for (const CLI::Option* option : parser.get_options()) {
    if (option->count() == 0 || from_file.contains(option)) continue;
    if (const auto reason = without_effect(*option, settings)) {
      throw ValueError(fmt::format("{} has no effect {}", option->get_name(), *reason));
    }
  }
}

void complete(CLI::App& parser, Settings& settings, const FromFile& from_file) {
  check_effects(parser, settings, from_file);
  if (settings.recipe.schedule == LrSchedule::warmup_stable_decay && settings.recipe.decay_steps == 0) {
    throw ValueError(
        "--schedule wsd needs --decay-steps, the number of last steps in which the learning rate falls");
  }
  settings.tokenizer = tokenizer_in("", settings.tokenizer);
  GptConfig& model = settings.recipe.model;
  if (model.positions == Positions::rotary) model.block.attention.rotary = settings.rotary;
  scale_recipe(parser, settings.recipe, recommended_recipe(settings));
  for (CLI::Option* option : parser.get_options()) option->capture_default_str();
}

std::string which_defaults(const Settings& settings) {
  const std::string source = !settings.text.empty() ? (settings.lines ? "the lines of a text" : "a text")
                                                    : "the task " + settings.task;
  return fmt::format(
      "These defaults are recommended for {}; after --task, --text or --lines, --help shows theirs.\n"
      "Some follow from other options, as their lines say: --warmup, --final-lr, --d-hidden, --kv-heads and\n"
      "--head-size.\n",
      source);
}

}  // namespace

// CLI11 runs what an option does in the order in which options are added: so a file of settings is read
// first, then the task or text chosen, then the recommended recipe changed option by option, and then, if it
// is asked for, the help printed, with the defaults that all of them lead to.
void add_options(CLI::App& parser, Settings& settings) {
  const auto from_file = std::make_shared<FromFile>();
  settings.recipe = recommended_recipe(settings);
  parser.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_file_options(parser, settings, from_file);
  add_source_options(parser, settings);
  add_data_options(parser, settings);
  add_model_options(parser, settings);
  add_training_options(parser, settings);
  add_run_options(parser, settings);
  const auto finish = [&, from_file] { complete(parser, settings, *from_file); };
  parser.parse_complete_callback(finish);
  parser.set_help_flag();
  parser
      .add_flag_callback(
          "-h,--help",
          [&parser, &settings, finish] {
            finish();
            parser.footer(which_defaults(settings));
            throw CLI::CallForHelp();
          },
          "Print this help and exit")
      ->configurable(false);
}

std::string settings_text(const CLI::App& parser, const Settings& settings) {
  std::string text;
  for (const CLI::Option* option : parser.get_options()) {
    const std::string value = option->get_default_str();
    if (!option->get_configurable() || value.empty() || without_effect(*option, settings)) continue;
    text += settings_line(option->get_name().substr(2), kind_of(*option), value);
  }
  return text;
}

Settings settings_of_run(const std::filesystem::path& run) {
  Settings settings;
  CLI::App parser;
  add_options(parser, settings);
  parser.parse(std::vector<std::string>{run.string(),
                                        "--resume"});  // CLI11 takes arguments from the last to the first
  return settings;
}

}  // namespace fovea::cli
