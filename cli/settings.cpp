#include "cli/settings.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/options.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/data/text_data.h"
#include "fovea/train/tasks/task.h"

namespace fovea::cli {
namespace {

// --- Kinds of options ------------------------------------------------------------------------------------

// Turned off by `--name=false`.
void add_switch(CLI::App& parser, const std::string& option, bool& value, const std::string& help) {
  parser.add_flag(option, value, help)->default_str(value ? "true" : "false");
}

template <class E>
using Names = std::vector<std::pair<std::string, E>>;

// An option whose values have names.
template <class E>
CLI::Option* add_choice(CLI::App& parser, const std::string& option, E& value, const Names<E>& names,
                        const std::string& help) {
  std::vector<std::string> texts;
  std::string standard;
  for (const auto& [text, meaning] : names) {
    texts.push_back(text);
    if (meaning == value) standard = text;
  }
  const std::string list = fmt::format("{}", fmt::join(texts, ", "));
  const auto set = [&value, names](const std::string& chosen) {
    for (const auto& [text, meaning] : names) {
      if (text == chosen) value = meaning;
    }
  };
  const auto check = [texts, list](const std::string& text) -> std::string {
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) return "";
    return fmt::format("there is no \"{}\"; there is: {}", text, list);
  };
  return parser.add_option_function<std::string>(option, set, fmt::format("{}: {}", help, list))
      ->check(CLI::Validator(check, ""))
      ->type_name("NAME")
      ->default_str(standard);
}

const Names<ModelKind> model_kinds{{"gpt", ModelKind::gpt}, {"one-head", ModelKind::one_head}};
const Names<OptimizerKind> optimizer_kinds{{"adamw", OptimizerKind::adamw},
                                           {"adam", OptimizerKind::adam},
                                           {"sgd", OptimizerKind::sgd},
                                           {"lion", OptimizerKind::lion},
                                           {"muon", OptimizerKind::muon}};
const Names<LrSchedule> decays{{"constant", LrSchedule::constant},
                               {"linear", LrSchedule::linear},
                               {"cosine", LrSchedule::cosine},
                               {"wsd", LrSchedule::warmup_stable_decay}};
const Names<Positions> position_kinds{
    {"learned", Positions::learned}, {"sine-cosine", Positions::sine_cosine}, {"rotary", Positions::rotary},
    {"alibi", Positions::alibi},     {"relative", Positions::relative},       {"none", Positions::none}};
const Names<NormKind> norm_kinds{{"layer", NormKind::layer}, {"rms", NormKind::rms}};
const Names<Activation> activations{{"gelu", Activation::gelu},
                                    {"gelu-tanh", Activation::gelu_tanh},
                                    {"silu", Activation::silu},
                                    {"relu", Activation::relu}};

std::string check_task(const std::string& name) {
  const std::vector<std::string> known = task_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  return fmt::format("there is no task \"{}\"; there is: {}", name, fmt::join(known, ", "));
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

// --- Groups of options, as the help text shows them ------------------------------------------------------

void add_data_options(CLI::App& parser, Settings& settings) {
  parser.option_defaults()->group("What to learn");
  parser.add_option("--task", settings.task, "A task with a known answer: see fovea tasks")
      ->check(CLI::Validator(check_task, ""))
      ->type_name("NAME");
  parser.add_option("--text", settings.text, "A text file, or a token file, instead of a task")
      ->transform(CLI::Validator([](std::string& path) { return path = absolute(path), std::string(); }, ""))
      ->type_name("FILE")
      ->default_str("");
  add_switch(parser, "--lines", settings.lines,
             "Each line of the text is an example by itself, such as a name");
  parser.add_option("--validation", settings.validation, "Part of a text that is kept to evaluate on")
      ->check(within(0, 0.99));
  parser
      .add_option(
          "--tokenizer", settings.tokenizer,
          "Of a text: characters, bytes, byte-pairs, or a folder with GPT-2's vocab.json and merges.txt")
      ->type_name("NAME");
  parser.add_option("--merges", settings.merges, "How many merges byte-pairs learn")->check(count(0));
  parser.add_option("--context", settings.context, "How many tokens of a text the model sees at once")
      ->check(count(1));
}

void add_model_options(CLI::App& parser, Recipe& recipe) {
  GptConfig& model = recipe.model;
  parser.option_defaults()->group("The model");
  add_choice(parser, "--model", recipe.kind, model_kinds, "Which one");
  parser.add_option("--layers", model.layers, "Transformer blocks")->check(count(1, 1000));
  parser.add_option("--heads", model.heads, "Heads of attention")->check(count(1, 65536));
  parser.add_option("--d-model", model.d_model, "Channels")->check(count(1, 65536));
  parser.add_option("--dropout", model.dropout, "Share of values that training drops")->check(within(0, 1));
  add_choice(parser, "--positions", model.positions, position_kinds, "How the model knows the order");
  add_choice(parser, "--norm", model.norm, norm_kinds, "Normalization");
  add_choice(parser, "--activation", model.activation, activations, "Within the feed-forward layers");
  add_switch(parser, "--swiglu", model.swiglu, "SwiGLU instead of the activation");
  add_switch(parser, "--qk-norm", model.qk_norm, "Normalize queries and keys");
  add_switch(parser, "--bias", model.bias, "Biases in attention and feed-forward layers");
  add_switch(parser, "--tied-output", model.tied_output,
             "Logits by the table of the words (--tied-output=false: by one of their own)");
}

void add_training_options(CLI::App& parser, Settings& settings) {
  Recipe& recipe = settings.recipe;
  parser.option_defaults()->group("Training");
  parser.add_option("--steps", recipe.steps, "How many updates of the weights")->check(count(1));
  parser.add_option("--batch", recipe.batch, "Sequences in a batch")->check(count(1, 1'000'000));
  parser.add_option("--accumulate", recipe.accumulate, "Batches in a step")->check(count(1, 1'000'000));
  add_choice(parser, "--optimizer", recipe.optimizer, optimizer_kinds, "Which one");
  parser.add_option("--lr", recipe.learning_rate, "Learning rate, reached after the warm-up")
      ->check(positive());
  parser.add_option("--final-lr", recipe.final_learning_rate, "Learning rate of the last step")
      ->check(at_least(0));
  add_choice(parser, "--schedule", recipe.decay, decays, "How the learning rate goes down");
  parser.add_option("--warmup", recipe.warmup, "Steps until the learning rate is reached")->check(count(0));
  parser.add_option("--decay-steps", recipe.decay_steps, "Steps of the decay at the end, for wsd")
      ->check(count(0));
  parser.add_option("--beta1", recipe.beta1, "Of the mean of gradients, or momentum")->check(within(0, 1));
  parser.add_option("--beta2", recipe.beta2, "Of the mean of their squares")->check(within(0, 1));
  parser.add_option("--weight-decay", recipe.weight_decay, "Of matrices, times the learning rate")
      ->check(at_least(0));
  parser
      .add_option("--adam-rate-factor", recipe.adam_rate_factor,
                  "With muon: learning rate of what is no matrix, times --lr")
      ->check(at_least(0));
  parser.add_option("--clip", recipe.clip, "Limit of the norm of all gradients; 0: none")->check(at_least(0));
  parser.add_option("--average", recipe.average, "Decay of averaged weights, which are evaluated; 0: none")
      ->check(within(0, 1));
  parser
      .add_option("--skip-outliers", settings.skip_outliers,
                  "Skip a step whose loss is so many deviations above the recent mean; 0: never")
      ->check(at_least(0));
  parser.add_option("--seed", settings.seed, "Of all random numbers: the same seed, the same run")
      ->check(seed());
}

void add_run_options(CLI::App& parser, Settings& settings) {
  parser.option_defaults()->group("The run");
  parser.add_option("--evaluate-every", settings.evaluate_every, "Steps; 0: at the end alone")
      ->check(count(0));
  parser
      .add_option("--patience", settings.patience,
                  "Stop after so many evaluations without a better one; 0: never")
      ->check(count(0));
  parser.add_option("--checkpoint-every", settings.checkpoint_every, "Steps; 0: at the end alone")
      ->check(count(0));
  parser.add_option("--keep", settings.keep, "How many of the last checkpoints, besides the best")
      ->check(count(1));
  parser.add_option("--max-tokens", settings.max_tokens, "Stop after so many tokens; 0: never")
      ->check(count(0, std::numeric_limits<std::int64_t>::max()));
  parser.option_defaults()->configurable(false);
  parser.add_option("--minutes", settings.minutes, "Save and stop after so long; 0: never")
      ->check(at_least(0));
  parser.add_option("--run", settings.run, "The folder to write; by default a new one in runs/")
      ->type_name("FOLDER")
      ->default_str("");
  parser.add_option("--resume", settings.resume, "Go on with this run, with its settings")
      ->type_name("RUN")
      ->default_str("");
  parser.add_option("--config", "A file of settings (TOML or INI): steps = 1000; options count more")
      ->type_name("FILE");
  parser.add_option("--threads", settings.threads, "Threads to use; results do not depend on it")
      ->check(count(1, 4096));
}

// --- Files of settings -----------------------------------------------------------------------------------

// The last value of an option among arguments, before CLI11 has seen them.
std::optional<std::string> value_of(const std::vector<std::string>& arguments, std::string_view option) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size()) value = arguments[i + 1];
    if (arguments[i].starts_with(std::string(option) + "=")) value = arguments[i].substr(option.size() + 1);
  }
  return value;
}

std::filesystem::path settings_of(const std::filesystem::path& run) {
  std::filesystem::path file = run / settings_file;
  if (std::filesystem::exists(file)) return file;
  throw FileError(fmt::format("{} is no run: there is no {} in it", run.string(), settings_file));
}

// What the file says, as arguments: `steps = 1000` is --steps=1000.
std::vector<std::string> arguments_in(const std::filesystem::path& file) {
  const auto complain = [&](const std::string& what) -> void {
    throw ValueError(fmt::format("{}: {}", file.string(), what));
  };
  CLI::App known;
  Settings unused;
  add_options(known, unused);
  std::istringstream text(read_text(file));
  std::vector<std::string> arguments;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(text)) {
    if (item.name == "++" || item.name == "--") continue;  // where CLI11 has a section begin and end
    if (!item.parents.empty()) {
      complain(fmt::format("[{}]: sections have no meaning here", fmt::join(item.parents, ".")));
    }
    if (item.name == "config" || item.name == "resume" || !known.get_option_no_throw("--" + item.name))
      complain(fmt::format("there is no setting {:?} (see fovea train --help)", item.name));
    if (item.inputs.size() != 1) {
      complain(fmt::format("{:?} needs one value, and has {}", item.name, item.inputs.size()));
    }
    if (item.inputs.front().empty()) continue;  // as an option that is not given
    arguments.push_back(fmt::format("--{}={}", item.name, item.inputs.front()));
  }
  return arguments;
}

// --- What is recommended ---------------------------------------------------------------------------------

// For lines such as names: about 200,000 parameters, in a few minutes.
Recipe recipe_for_lines() {
  Recipe recipe;
  recipe.model.d_model = 64;
  recipe.model.dropout = 0.1;
  recipe.model.swiglu = true;
  recipe.batch = 32;
  recipe.steps = 18000;
  recipe.learning_rate = 1.5e-3;
  recipe.final_learning_rate = 5e-5;
  recipe.warmup = 200;
  recipe.average = 0.999;
  return recipe;
}

bool is_set(const std::vector<std::string>& arguments, std::string_view flag) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == flag || argument == std::string(flag) + "=true";
  });
}

Recipe recommended(const std::vector<std::string>& arguments) {
  if (!value_of(arguments, "--text").value_or("").empty()) {
    return is_set(arguments, "--lines") ? recipe_for_lines() : Recipe{};
  }
  const std::string task = value_of(arguments, "--task").value_or(Settings{}.task);
  return check_task(task).empty() ? make_task(task)->recipe() : Recipe{};
}

// What follows from a shorter run or another learning rate, where nothing else is said: a warm-up of a tenth
// at most, and a final rate in the same relation. As arguments, they keep all digits in the run's file.
std::vector<std::string> derived(const std::vector<std::string>& arguments, const Recipe& recipe) {
  std::vector<std::string> more;
  std::int64_t steps = 0;
  if (!value_of(arguments, "--warmup") &&
      CLI::detail::lexical_cast(value_of(arguments, "--steps").value_or(""), steps)) {
    more.push_back(
        fmt::format("--warmup={}", std::min(recipe.warmup, std::max<std::int64_t>(steps, 0) / 10)));
  }
  double rate = 0;
  if (!value_of(arguments, "--final-lr") &&
      CLI::detail::lexical_cast(value_of(arguments, "--lr").value_or(""), rate) && rate > 0) {
    more.push_back(fmt::format("--final-lr={}", rate * (recipe.final_learning_rate / recipe.learning_rate)));
  }
  return more;
}

}  // namespace

void add_options(CLI::App& parser, Settings& settings) {
  parser.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_data_options(parser, settings);
  add_model_options(parser, settings.recipe);
  add_training_options(parser, settings);
  add_run_options(parser, settings);
}

std::vector<std::string> prepare(const std::vector<std::string>& arguments, Settings& settings) {
  std::vector<std::string> all;
  if (const auto run = value_of(arguments, "--resume")) {
    all = arguments_in(settings_of(*run));
  } else if (const auto file = value_of(arguments, "--config")) {
    all = arguments_in(*file);
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  settings.recipe = recommended(all);
  const std::vector<std::string> more = derived(all, settings.recipe);
  all.insert(all.begin(), more.begin(), more.end());
  return all;
}

void check_resumable(const CLI::App& parser, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    const CLI::Option* option = name.starts_with("--") ? parser.get_option_no_throw(name) : nullptr;
    if (option && (option->get_configurable() || name == "--run" || name == "--config")) {
      throw ValueError(
          fmt::format("{} can't be changed: a run is resumed as it began. Start another one instead", name));
    }
  }
}

Settings settings_of_run(const std::filesystem::path& run) {
  Settings settings;
  std::vector<std::string> arguments = prepare({"--resume", run.string()}, settings);
  CLI::App parser;
  add_options(parser, settings);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  parser.parse(arguments);
  return settings;
}

}  // namespace fovea::cli
