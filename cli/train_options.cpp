#include "cli/train_options.h"

#include <CLI/CLI.hpp>

#include <array>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "fovea/train/tasks/task.h"
#include "layers/model_options.h"

namespace fovea::cli {
namespace {

// The groups of options that a Gpt has and a OneHeadModel has not.
constexpr const char *gpt_group = "Model, with --model gpt", *attention_group = "Attention, with --model gpt",
                     *mlp_group = "MLP, with --model gpt";

// --- Names of values -------------------------------------------------------------------------------------

// The names that files of models have for the values.
template <class E>
Names<E> names_in_files() {
  const auto names = detail::names_of(E());
  return {names.begin(), names.end()};
}

const Names<ModelKind> model_kinds{{"gpt", ModelKind::gpt}, {"one-head", ModelKind::one_head}};
const Names<NormKind> norm_kinds = names_in_files<NormKind>();
const Names<NormPlace> norm_places = names_in_files<NormPlace>();
const Names<MlpKind> mlp_kinds = names_in_files<MlpKind>();
const Names<Positions> position_kinds = names_in_files<Positions>();
const Names<RotaryScaling> rotary_scalings = names_in_files<RotaryScaling>();
const Names<OptimizerKind> optimizer_kinds{{"adamw", OptimizerKind::adamw},
                                           {"adam", OptimizerKind::adam},
                                           {"sgd", OptimizerKind::sgd},
                                           {"lion", OptimizerKind::lion},
                                           {"muon", OptimizerKind::muon}};
const Names<LrSchedule> schedules{{"constant", LrSchedule::constant},
                                  {"linear", LrSchedule::linear},
                                  {"cosine", LrSchedule::cosine},
                                  {"wsd", LrSchedule::warmup_stable_decay}};

// --- Groups ----------------------------------------------------------------------------------------------

void add_gpt_options(CLI::App& parser, GptConfig& model) {
  TransformerBlockOptions& block = model.block;
  parser.option_defaults()->group(gpt_group);
  add_value(parser, "--layers", model.layers, "Number of transformer blocks")->check(count(1, 1000));
  add_choice(parser, "--norm", block.norm, norm_kinds, "Kind of normalization");
  add_choice(parser, "--norm-place", block.norm_place, norm_places,
             "Normalize before each sublayer or after each residual addition");
  add_value(parser, "--dropout", block.dropout,
            "Probability of dropping elements of embeddings and of what attention and MLP add")
      ->check(within(0, 1));
  add_switch(parser, "--tied-output", model.tied_output,
             "Use the token embedding as output layer too (--tied-output=false: a matrix of its own)");
}

void add_attention_options(CLI::App& parser, GptConfig& model, RotaryOptions& rotary) {
  MultiHeadAttentionOptions& attention = model.block.attention;
  parser.option_defaults()->group(attention_group);
  add_value(parser, "--heads", model.heads, "Number of heads")->check(count(1, 65536));
  add_optional(parser, "--kv-heads", attention.key_value_heads,
               "Number of heads of keys and values; as --heads unless given")
      ->check(count(1, 65536));
  add_optional(parser, "--head-size", attention.head_size,
               "Channels of each head; --d-model / --heads unless given")
      ->check(count(1, 65536));
  add_choice(parser, "--positions", model.positions, position_kinds, "How the model knows the order");
  add_value(parser, "--rope-base", rotary.base, "Base of the angles of rotary positions")->check(positive());
  add_choice(parser, "--rope-scaling", rotary.scaling, rotary_scalings,
             "How rotary positions are stretched for sequences longer than the model was trained on");
  add_value(parser, "--rope-factor", rotary.factor, "How many times longer those sequences are")
      ->check(positive());
  add_optional(parser, "--window", attention.window,
               "Number of latest positions that each position sees, itself included; all unless given")
      ->check(count(1));
  add_value(parser, "--softcap", attention.softcap,
            "Limit of attention scores: softcap * tanh(score / softcap); 0: no limit")
      ->check(at_least(0));
  add_switch(parser, "--sinks", attention.sinks, "Give each head a learned attention sink");
  add_switch(parser, "--qk-norm", attention.qk_norm, "Normalize the queries and keys of each head");
  add_switch(parser, "--attention-bias", attention.bias, "Add biases to the projections of attention");
  add_value(parser, "--attention-dropout", attention.dropout, "Probability of dropping attention weights")
      ->check(within(0, 1));
}

void add_mlp_options(CLI::App& parser, TransformerBlockOptions& block) {
  parser.option_defaults()->group(mlp_group);
  add_choice(parser, "--mlp", block.mlp, mlp_kinds, "Activation or gated form of the MLPs, or no MLPs");
  add_optional(parser, "--d-hidden", block.d_hidden,
               "Hidden channels of each MLP; 4 times --d-model unless given, or 8/3 if gated")
      ->check(count(1, 1'000'000));
  add_switch(parser, "--mlp-bias", block.mlp_bias, "Add biases to MLPs that are not gated");
}

void add_optimizer_options(CLI::App& parser, Recipe& recipe) {
  parser.option_defaults()->group("Optimizer");
  add_choice(parser, "--optimizer", recipe.optimizer, optimizer_kinds, "Optimizer");
  add_value(parser, "--lr", recipe.learning_rate, "Learning rate after the warm-up")->check(positive());
  add_value(parser, "--final-lr", recipe.final_learning_rate,
            "Learning rate of the last step; changes in proportion to --lr unless given")
      ->check(at_least(0));
  add_choice(parser, "--schedule", recipe.schedule, schedules, "Shape of the learning rate's decay");
  add_value(parser, "--warmup", recipe.warmup,
            "Steps over which the learning rate rises from 0; at most a tenth of --steps unless given")
      ->check(count(0));
  add_value(parser, "--decay-steps", recipe.decay_steps, "Steps of the final decay of the wsd schedule")
      ->check(count(0));
  add_value(parser, "--beta1", recipe.beta1,
            "Decay of the running mean of gradients; momentum of sgd and muon")
      ->check(within(0, 1));
  add_value(parser, "--beta2", recipe.beta2, "Decay of the running mean of squared gradients")
      ->check(within(0, 1));
  add_value(parser, "--weight-decay", recipe.weight_decay,
            "Decoupled weight decay of matrices, multiplied by the learning rate")
      ->check(at_least(0));
  add_value(parser, "--adam-lr-scale", recipe.adam_lr_scale,
            "For muon: learning rate of all parameters that Adam updates, as a multiple of --lr")
      ->check(at_least(0));
  add_value(parser, "--clip", recipe.clip, "Largest norm of all gradients together; 0: no clipping")
      ->check(at_least(0));
  add_value(parser, "--ema-decay", recipe.ema_decay,
            "Decay of the moving average of weights that is evaluated; 0: no average")
      ->check(within(0, 1));
}

// --- Options without effect ------------------------------------------------------------------------------

using Reason = std::optional<std::string>;

Reason without_effect_on_data(const std::string& name, const Settings& settings) {
  const bool of_text = name == "--text" || name == "--lines" || name == "--validation" ||
                       name == "--tokenizer" || name == "--merges";
  if (settings.text.empty()) return of_text ? Reason("on a task: choose --text FILE") : std::nullopt;
  if (name == "--task") return "on a text";
  if (name == "--evaluate-every" && settings.validation == 0)
    return "where nothing is held out: choose a --validation above 0";
  if (name == "--merges" && settings.tokenizer != "byte-pairs")
    return "on this tokenizer: choose --tokenizer byte-pairs";
  return std::nullopt;
}

Reason without_effect_on_optimizer(const std::string& name, const Recipe& recipe) {
  const OptimizerKind kind = recipe.optimizer;
  if (name == "--final-lr" && recipe.schedule == LrSchedule::constant)
    return "on a constant learning rate: choose --schedule linear, cosine or wsd";
  if (name == "--decay-steps" && recipe.schedule != LrSchedule::warmup_stable_decay)
    return "on this schedule: choose --schedule wsd";
  if (name == "--beta2" && (kind == OptimizerKind::sgd || kind == OptimizerKind::muon))
    return "on this optimizer: choose --optimizer adamw, adam or lion";
  if (name == "--weight-decay" && (kind == OptimizerKind::sgd || kind == OptimizerKind::adam))
    return "on this optimizer: choose --optimizer adamw, lion or muon";
  if (name == "--adam-lr-scale" && kind != OptimizerKind::muon)
    return "on this optimizer: choose --optimizer muon";
  return std::nullopt;
}

Reason without_effect_on_model(const CLI::Option& option, const Settings& settings) {
  const std::string name = option.get_name();
  const std::string& group = option.get_group();
  const bool only_gpt = group == gpt_group || group == attention_group || group == mlp_group;
  const GptConfig& model = settings.recipe.model;
  const MlpKind mlp = model.block.mlp;
  if (only_gpt && settings.recipe.kind == ModelKind::one_head)
    return "on the one-head model: choose --model gpt";
  if (name.starts_with("--rope-") && model.positions != Positions::rotary)
    return "on these positions: choose --positions rotary";
  if (name == "--rope-factor" && settings.rotary.scaling == RotaryScaling::none)
    return "without scaling: choose --rope-scaling linear or ntk";
  if (name == "--d-hidden" && mlp == MlpKind::none) return "without an MLP: choose another --mlp";
  if (name == "--mlp-bias" && (mlp == MlpKind::none || mlp == MlpKind::swiglu || mlp == MlpKind::geglu))
    return "on this MLP: choose --mlp gelu, gelu-tanh, relu or silu";
  return std::nullopt;
}

}  // namespace

void add_data_options(CLI::App& parser, Settings& settings) {
  parser.option_defaults()->group("Data");
  add_value(parser, "--validation", settings.validation, "Part of a text that is held out for evaluation")
      ->check(within(0, 0.99));
  add_value(parser, "--tokenizer", settings.tokenizer,
            "Tokenizer of a text: characters, bytes, byte-pairs, or a folder with GPT-2's vocab.json and "
            "merges.txt")
      ->check(not_empty())
      ->type_name("NAME");
  add_value(parser, "--merges", settings.merges, "Number of merges that byte-pairs learns from the text")
      ->check(count(0));
  add_value(parser, "--context", settings.context,
            "Number of tokens of a text that the model sees at once; tasks and --lines have their own")
      ->check(count(1));
}

void add_model_options(CLI::App& parser, Settings& settings) {
  GptConfig& model = settings.recipe.model;
  parser.option_defaults()->group("Model");
  add_choice(parser, "--model", settings.recipe.kind, model_kinds, "Kind of model");
  add_value(parser, "--d-model", model.d_model, "Channels of the model")->check(count(1, 65536));
  add_gpt_options(parser, model);
  add_attention_options(parser, model, settings.rotary);
  add_mlp_options(parser, model.block);
}

void add_training_options(CLI::App& parser, Settings& settings) {
  Recipe& recipe = settings.recipe;
  parser.option_defaults()->group("Training");
  add_value(parser, "--steps", recipe.steps, "Number of updates of the weights")->check(count(1));
  add_value(parser, "--batch", recipe.batch, "Sequences in a batch")->check(count(1, 1'000'000));
  add_value(parser, "--accumulate", recipe.accumulate, "Batches whose gradients are added for one step")
      ->check(count(1, 1'000'000));
  add_value(parser, "--skip-loss-above-sigma", settings.skip_loss_above_sigma,
            "Skip a step whose loss is this many standard deviations above the recent mean; 0: never skip")
      ->check(at_least(0));
  add_value(parser, "--seed", settings.seed, "Seed of all random numbers; the same seed gives the same run")
      ->check(seed());
  add_optimizer_options(parser, recipe);
}

void add_run_options(CLI::App& parser, Settings& settings) {
  parser.option_defaults()->group("Run");
  add_value(parser, "--evaluate-every", settings.evaluate_every,
            "Steps between evaluations; 0: evaluate only at the end")
      ->check(count(0));
  add_value(parser, "--patience", settings.patience,
            "Stop after this many evaluations in a row without a lower loss; 0: never")
      ->check(count(0));
  add_value(parser, "--checkpoint-every", settings.checkpoint_every,
            "Steps between checkpoints; 0: save only at the end")
      ->check(count(0));
  add_value(parser, "--keep-checkpoints", settings.keep_checkpoints,
            "Number of latest checkpoints to keep, besides the best one")
      ->check(count(1));
  add_switch(parser, "--no-checkpoints", settings.no_checkpoints,
             "Save logs and results only, as for a sweep of many runs; the run can't be resumed");
  add_value(parser, "--max-tokens", settings.max_tokens, "Stop after training on this many tokens; 0: never")
      ->check(count(0, std::numeric_limits<std::int64_t>::max()));
  add_value(parser, "--minutes", settings.minutes, "Save and stop after this many minutes; 0: never")
      ->check(at_least(0))
      ->configurable(false);
  add_value(parser, "--run", settings.run, "Folder to write; a new one in runs/ unless given")
      ->check(not_empty())
      ->type_name("FOLDER")
      ->configurable(false);
  add_threads(parser, settings.threads)->configurable(false);
}

std::optional<std::string> without_effect(const CLI::Option& option, const Settings& settings) {
  const std::string name = option.get_name();
  if (auto reason = without_effect_on_data(name, settings)) return reason;
  if (auto reason = without_effect_on_optimizer(name, settings.recipe)) return reason;
  return without_effect_on_model(option, settings);
}

}  // namespace fovea::cli
