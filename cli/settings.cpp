#include "cli/settings.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <vector>

#include "autograd/base/text.h"
#include "cli/file_options.h"
#include "cli/options.h"
#include "cli/settings_file.h"
#include "cli/train_options.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {
namespace {

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

// Settings that need others, where the layer or schedule made of them could not name the options.
void check_needs(const Recipe& recipe) {
  if (recipe.schedule == LrSchedule::warmup_stable_decay && recipe.decay_steps == 0) {
    throw ValueError(
        "--schedule wsd needs --decay-steps, the number of last steps in which the learning rate falls");
  }
  const GptConfig& model = recipe.model;
  const std::int64_t head = model.block.attention.head_size.value_or(model.d_model / model.heads);
  if (recipe.kind == ModelKind::gpt && model.positions == Positions::rotary && head % 2 != 0) {
    throw ValueError(fmt::format(
        "--positions rotary turns pairs of channels, and each head has {}: choose an even --head-size, or "
        "--d-model and --heads that give one",
        head));
  }
}

// Scripts give the same --context to texts and tasks, so it is no error where it has no effect.
std::string note_on_context(const CLI::App& parser, const Settings& settings, const FromFile& from_file) {
  const CLI::Option* option = parser.get_option("--context");
  const bool is_used = !settings.text.empty() && !settings.lines;
  if (is_used || option->count() == 0 || from_file.contains(option)) return "";
  return fmt::format("--context has no effect: {}", settings.text.empty()
                                                        ? "a task has its own"
                                                        : "with --lines it is that of the longest line");
}

void complete(CLI::App& parser, Settings& settings, const FromFile& from_file) {
  check_effects(parser, settings, from_file);
  check_needs(settings.recipe);
  settings.note = note_on_context(parser, settings, from_file);
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
