#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/corpus.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/saved_settings.h"
#include "cli/score_file.h"
#include "cli/settings.h"
#include "cli/streams.h"
#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/train/loop/interrupt.h"
#include "fovea/train/loop/progress.h"
#include "fovea/train/loop/run.h"
#include "fovea/train/loop/run_folder.h"
#include "fovea/train/loop/stop_conditions.h"
#include "fovea/train/loop/trainer.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

TrainerOptions trainer_options(const Settings& settings, const Corpus& corpus) {
  const Recipe& recipe = settings.recipe;
  TrainerOptions options;
  options.steps = recipe.steps;
  options.learning_rate = make_schedule(recipe);
  options.accumulate = recipe.accumulate;
  if (recipe.clip > 0) options.clip = recipe.clip;
  options.ema_decay = recipe.ema_decay;
  options.skip_loss_above_sigma = settings.skip_loss_above_sigma;
  options.seed = settings.seed;
  options.evaluation = corpus.validation;
  if (corpus.validation) options.evaluate_every = settings.evaluate_every;
  return options;
}

void add_stop_conditions(Trainer& trainer, const Settings& settings, const Corpus& corpus,
                         const Interrupt& interrupt) {
  if (settings.patience > 0) {
    if (!corpus.validation || settings.evaluate_every == 0) {
      throw ValueError("--patience counts evaluations: it needs --evaluate-every and --validation above 0");
    }
    trainer.stop_when(early_stopping(settings.patience));
  }
  if (settings.max_tokens > 0) trainer.stop_when(token_budget(settings.max_tokens));
  if (settings.minutes > 0) trainer.stop_when(time_budget(60 * settings.minutes));
  trainer.stop_when(interrupted(interrupt));
}

// Takes a folder for a new run, the one that is named or a new one in runs/, and saves the settings there.
RunFolder new_folder(const Settings& settings, const std::string& settings_text) {
  const std::string name = settings.text.empty() ? settings.task : fs::path(settings.text).stem().string();
  RunFolder folder = settings.run.empty() ? RunFolder::make_numbered(fs::path("runs") / name)
                                          : RunFolder::make(settings.run);
  if (folder.has_run() || fs::exists(fs::symlink_status(folder.path() / settings_file))) {
    throw FileError(fmt::format(
        "{0} has a run already: continue it with fovea train --resume {0}, or name another folder",
        folder.path().string()));
  }
  folder.write(settings_file, settings_text);
  return folder;
}

// The checkpoint of the run that is continued, or that this one begins from.
std::optional<fs::path> checkpoint_before(const Settings& settings) {
  if (settings.resume.empty() && settings.from.empty()) return std::nullopt;
  const fs::path run = settings.resume.empty() ? settings.from : settings.resume;
  const std::optional<fs::path> checkpoint = latest_checkpoint(run);
  if (!checkpoint && (!settings.from.empty() || settings.no_checkpoints)) {
    throw FileError(fmt::format("the run {} has no checkpoint, so there is nothing to {}",
                                detail::in_quotes(run.string()),
                                settings.from.empty() ? "continue" : "begin from"));
  }
  return checkpoint;
}

// Another run's text may be a new one, but the tokens are the same. `saved`: the metadata of the checkpoint
// before; empty if there is none.
Corpus open_corpus_of(const Settings& settings, Metadata saved) {
  if (!settings.resume.empty()) check_text_is_there(settings);
  if (!settings.from.empty()) saved.erase("data");
  return open_corpus(settings, saved);
}

// A run may be given more steps where those that it has taken had the learning rates that they would have
// had. `before`: the steps that it had to take until now.
void check_more_steps(const Settings& settings, std::int64_t before, std::int64_t taken) {
  if (settings.recipe.steps < taken) {
    throw ValueError(
        fmt::format("--steps {}: the run has taken {} steps already", settings.recipe.steps, taken));
  }
  Recipe recipe_before = settings.recipe;
  recipe_before.steps = before;
  const Schedule now = make_schedule(settings.recipe), then = make_schedule(recipe_before);
  for (std::int64_t step = 0; step < taken; ++step) {
    if (now(step) == then(step)) continue;
    throw ValueError(
        fmt::format("--steps {}: the learning rates of the {} steps that the run has taken followed from its "
                    "{} steps, so it can't be given more; begin another run with its weights by --from {}",
                    settings.recipe.steps, taken, before, detail::printable(settings.resume)));
  }
}

// Keeps a larger number of steps as the run's own, so that it counts whenever the run is resumed.
void extend(const Settings& settings, const std::string& settings_text, std::int64_t before,
            const TrainerStatus& status, const RunFolder& folder) {
  if (before != settings.recipe.steps) check_more_steps(settings, before, status.step);
  if (settings_of_run(folder.path()).recipe.steps != settings.recipe.steps)
    folder.write(settings_file, settings_text);
}

// A run that was killed before its first checkpoint is resumed from its beginning.
Run open_run(const Settings& settings, const std::string& settings_text, RunFolder folder, Trainer& trainer,
             const Corpus& corpus) {
  const std::optional<fs::path> checkpoint = latest_checkpoint(folder.path());
  if (checkpoint) check_same_data(corpus, read_safetensors_header(*checkpoint).metadata);
  Metadata metadata = corpus.metadata;
  metadata.merge(saved_settings(settings_text));
  return Run(std::move(folder), trainer,
             {.resume = checkpoint.has_value(),
              .checkpoints = !settings.no_checkpoints,
              .checkpoint_every = settings.checkpoint_every,
              .keep_checkpoints = settings.keep_checkpoints,
              .metadata = std::move(metadata)});
}

const char* describe(StopReason reason) {
  switch (reason) {
    case StopReason::no_improvement:
      return "stopped early, because the validation loss no longer falls";
    case StopReason::time_budget:
      return "its time is up";
    case StopReason::token_budget:
      return "it has seen its number of tokens";
    case StopReason::interrupted:
      return "interrupted";
    case StopReason::end_of_data:
      return "the data has ended";
    case StopReason::all_steps:
      break;
  }
  return "finished";
}

std::string beginning_text(const Settings& settings, const Corpus& corpus, const Trainer& trainer,
                           const Run& run) {
  std::string text = fmt::format("{}\n{}\nseed {}, threads {}\n\n", corpus.description, trainer.summary(),
                                 settings.seed, threads());
  for (const std::string& note : {settings.note, run.notice()}) {
    if (!note.empty()) text += note + "\n\n";
  }
  return text;
}

std::string status_text(const TrainerStatus& status, StopReason reason, double seconds,
                        const fs::path& folder) {
  std::string text =
      fmt::format("\n{:<10} {} steps, {} tokens in {:.1f} s: {}\n", "training", with_commas(status.step),
                  with_commas(status.tokens), seconds, describe(reason));
  if (status.skipped_non_finite + status.skipped_outliers > 0) {
    text +=
        fmt::format("{:<10} {} steps whose loss or gradient was not finite, {} whose loss was an outlier\n",
                    "skipped", status.skipped_non_finite, status.skipped_outliers);
  }
  return text + fmt::format("{:<10} {}\n", "run", detail::printable(folder.string()));
}

// The model with the averaged weights, if there are any: what `fovea eval` would load.
Model trained_model(const Model& model, const Trainer& trainer) {
  Model trained = clone(model);
  load(trained, model_state({.state = state(trainer)}, {.average = true}));
  return trained;
}

// Prints what a model has learned, and keeps its score. Returns whether that is enough.
bool report_result(const Settings& settings, const Corpus& corpus, Trainer& trainer, const Model& model,
                   const RunFolder& folder) {
  if (settings.text.empty()) {
    const std::vector<Metric> metrics = print_score(settings, trained_model(model, trainer));
    folder.write(score_file, score_text(metrics));
    return check_score(metrics);
  }
  const bool evaluated = trainer.status().evaluated_at == trainer.status().step;
  if (corpus.validation && !evaluated) {
    const EvaluationReport report = trainer.evaluate();
    print_loss({report.loss, report.tokens});
  }
  return true;
}

int train(const Settings& settings, const std::string& settings_text) {
  set_threads(settings.threads);
  // A run that is resumed is locked before its checkpoint is read, which another program might replace.
  std::optional<RunFolder> opened;
  if (!settings.resume.empty()) opened = RunFolder::open(settings.resume);
  const std::optional<fs::path> checkpoint = checkpoint_before(settings);
  const Metadata saved = checkpoint ? read_safetensors_header(*checkpoint).metadata : Metadata{};
  if (!settings.resume.empty()) check_saved_settings(settings, settings_text, saved);
  const Corpus corpus = open_corpus_of(settings, saved);
  if (!settings.resume.empty() && checkpoint) {
    check_model_sizes(settings.recipe, corpus.vocabulary, corpus.context, *checkpoint);
  }
  Rng rng(settings.seed);
  Model model(settings.recipe, corpus.vocabulary, corpus.context, rng);
  if (!settings.from.empty()) load_weights(model, load_safetensors(*checkpoint), *checkpoint);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(settings.recipe, named_parameters(model));
  std::optional<Interrupt> interrupt(std::in_place);
  Trainer trainer(model, *optimizer, corpus.training, trainer_options(settings, corpus));
  add_stop_conditions(trainer, settings, corpus, *interrupt);
  if (!opened) opened = new_folder(settings, settings_text);
  const Run run = open_run(settings, settings_text, std::move(*opened), trainer, corpus);
  if (!settings.resume.empty())
    extend(settings, settings_text, saved_steps(settings, saved), trainer.status(), run.folder());

  put(stdout, beginning_text(settings, corpus, trainer, run));
  Progress progress(stdout);
  trainer.on_step(std::ref(progress));
  trainer.on_evaluation(std::ref(progress));
  // The Run saves before this is called, unless the error is that it can't.
  trainer.on_failure([&] {
    progress.end_line();
    const std::optional<fs::path> latest = latest_checkpoint(run.folder().path());
    if (!latest) return;
    put(stdout, fmt::format("\n{:<10} {}: the latest checkpoint is {}\n", "run",
                            detail::printable(run.folder().path().string()), latest->filename().string()));
  });
  const StopReason reason = trainer.run();
  progress.end_line();
  const fs::path& path = run.folder().path();
  put(stdout, status_text(trainer.status(), reason, progress.seconds(), path));
  if (reason == StopReason::interrupted) {
    print_error(fmt::format("interrupted at step {}; {}", trainer.status().step,
                            settings.no_checkpoints ? "nothing was saved, as --no-checkpoints asks"
                                                    : fmt::format("continue with: fovea train --resume {}",
                                                                  detail::printable(path.string()))));
    return interrupt->exit_status();
  }
  interrupt.reset();  // all is saved, so that a signal may end the program at once
  return report_result(settings, corpus, trainer, model, run.folder()) ? 0 : 1;
}

}  // namespace

Command train_command(CLI::App& program) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* parser = program.add_subcommand(
      "train", "Train a model on a task or a text, show what it has learned, and save the run in a folder");
  add_options(*parser, *settings);
  return {parser, [parser, settings] { return train(*settings, settings_text(*parser, *settings)); }};
}

}  // namespace fovea::cli
