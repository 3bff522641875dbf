#include "cli/settings.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include "cli/options.h"
#include "cli/train_options.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/data/text_data.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {
namespace {

// --- Files of settings -----------------------------------------------------------------------------------

// The options whose values came from a file. They are not checked as strictly as those of the command line,
// because the file of a run holds every option, at its default if it was not given.
using FromFile = std::set<const CLI::Option*>;

// Gives each option that the command line leaves out the value of its entry in the file, if there is one.
void read_settings(const std::filesystem::path& file, CLI::App& parser, FromFile& from_file) {
  const auto complain = [&](const std::string& what) {
    throw ValueError(fmt::format("{}: {}", file.string(), what));
  };
  std::istringstream text(read_text(file));
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(text)) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks around a section
    if (!item.parents.empty()) {
      complain(fmt::format("a file of settings has no sections, such as [{}]", fmt::join(item.parents, ".")));
    }
    CLI::Option* option = parser.get_option_no_throw("--" + item.name);
    if (!option || item.name == "config" || item.name == "resume") {
      complain(fmt::format("there is no setting {:?} (see fovea train --help)", item.name));
    }
    if (item.inputs.size() != 1) {
      complain(fmt::format("{:?} needs one value, and has {}", item.name, item.inputs.size()));
    }
    if (item.inputs.front().empty() || option->count() > 0) continue;
    option->add_result(item.inputs.front());
    from_file.insert(option);
  }
}

std::filesystem::path file_of_run(const std::filesystem::path& run) {
  std::filesystem::path file = run / settings_file;
  if (std::filesystem::exists(file)) return file;
  throw FileError(fmt::format("{} is no run: there is no {} in it", run.string(), settings_file));
}

// A run is resumed with its settings, so the command line may have none of them.
void check_resumable(const CLI::App& parser) {
  for (const CLI::Option* option : parser.get_options()) {
    const std::string name = option->get_name();
    const bool is_fixed = option->get_configurable() || name == "--run" || name == "--config";
    if (option->count() > 0 && is_fixed && option != parser.get_help_ptr()) {
      throw ValueError(
          fmt::format("{} can't be changed: a run is resumed as it began. Start another one instead", name));
    }
  }
}

void add_file_options(CLI::App& parser, Settings& settings, const std::shared_ptr<FromFile>& from_file) {
  const auto resume = [&, from_file](const std::string& run) {
    settings.resume = run;
    check_resumable(parser);
    read_settings(file_of_run(run), parser, *from_file);
  };
  const auto configure = [&, from_file](const std::string& file) { read_settings(file, parser, *from_file); };
  parser.option_defaults()->group("Settings");
  parser.add_option_function<std::string>("--resume", resume, "Continue this run, with its settings")
      ->type_name("RUN")
      ->configurable(false);
  parser
      .add_option_function<std::string>("--config", configure,
                                        "Read settings from a TOML or INI file; options override them")
      ->type_name("FILE")
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

// Takes over the recipe that is recommended for the task or text, and shows it as the defaults.
void recommend(CLI::App& parser, Settings& settings) {
  settings.recipe = recommended_recipe(settings);
  settings.rotary = settings.recipe.model.block.attention.rotary.value_or(RotaryOptions{});
  for (CLI::Option* option : parser.get_options()) option->capture_default_str();
}

// A run may be resumed from another folder.
std::string make_absolute(std::string& path) {
  if (!path.empty()) path = std::filesystem::absolute(path).string();
  return "";
}

std::string check_task(const std::string& name) {
  const std::vector<std::string> known = task_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  return fmt::format("there is no task \"{}\"; there is: {}", name, fmt::join(known, ", "));
}

void add_source_options(CLI::App& parser, Settings& settings) {
  parser.option_defaults()->group("Data");
  const auto choose_task = [&](const std::string& name) {
    settings.task = name;
    recommend(parser, settings);
  };
  const auto choose_text = [&](const std::string& path) {
    settings.text = path;
    recommend(parser, settings);
  };
  const auto choose_lines = [&](std::int64_t count) {
    settings.lines = count > 0;
    recommend(parser, settings);
  };
  const auto add = [&](const char* name, const auto& choose, const std::string& shown, const char* help) {
    return show_default(parser.add_option_function<std::string>(name, choose, help),
                        [&shown = shown] { return shown; });
  };
  add("--task", choose_task, settings.task, "A task with a known answer: see fovea tasks")
      ->check(CLI::Validator(check_task, ""))
      ->type_name("NAME");
  add("--text", choose_text, settings.text, "A text file, or a file of token ids, to learn instead of a task")
      ->transform(CLI::Validator(make_absolute, ""))
      ->type_name("FILE");
  show_default(parser.add_flag_function("--lines", choose_lines,
                                        "Learn each line of the text by itself, such as a list of names"),
               [&] { return settings.lines ? "true" : "false"; });
}

// --- What follows from the options together --------------------------------------------------------------

// A shorter run warms up for a tenth of its steps at most, and another learning rate ends in the same
// proportion, unless the settings say otherwise.
void scale_recipe(CLI::App& parser, Recipe& recipe, const Recipe& recommended) {
  const auto given = [&](const char* name) { return parser.get_option(name)->count() > 0; };
  if (given("--steps") && !given("--warmup")) recipe.warmup = std::min(recipe.warmup, recipe.steps / 10);
  if (given("--lr") && !given("--final-lr")) {
    recipe.final_learning_rate =
        recipe.learning_rate * (recommended.final_learning_rate / recommended.learning_rate);
  }
  for (const char* name : {"--warmup", "--final-lr"}) parser.get_option(name)->capture_default_str();
}

void check_effects(const CLI::App& parser, const Settings& settings, const FromFile& from_file) {
  for (const CLI::Option* option : parser.get_options()) {
    if (option->count() == 0 || from_file.contains(option)) continue;
    if (const auto reason = without_effect(*option, settings)) {
      throw ValueError(fmt::format("{} has no effect {}", option->get_name(), *reason));
    }
  }
}

void complete(CLI::App& parser, Settings& settings, const FromFile& from_file) {
  check_effects(parser, settings, from_file);
  GptConfig& model = settings.recipe.model;
  if (model.positions == Positions::rotary) model.block.attention.rotary = settings.rotary;
  scale_recipe(parser, settings.recipe, recommended_recipe(settings));
}

}  // namespace

// CLI11 runs what an option does in the order in which options are added: so a file of settings is read
// first, then the task or text chosen, and then the recommended recipe changed option by option.
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
  parser.parse_complete_callback([&, from_file] { complete(parser, settings, *from_file); });
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
