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

Corpus open_corpus_of(const Settings& settings) {
  if (settings.resume.empty()) return open_corpus(settings);
  check_text_is_there(settings);
  const std::optional<fs::path> checkpoint = latest_checkpoint(settings.resume);
  return checkpoint ? open_corpus(settings, read_safetensors_header(*checkpoint).metadata)
                    : open_corpus(settings);
}

// A run that was killed before its first checkpoint is resumed from its beginning.
Run open_run(const Settings& settings, RunFolder folder, Trainer& trainer, const Corpus& corpus) {
  const std::optional<fs::path> checkpoint = latest_checkpoint(folder.path());
  if (checkpoint) check_same_data(corpus, read_safetensors_header(*checkpoint).metadata);
  return Run(std::move(folder), trainer,
             {.resume = checkpoint.has_value(),
              .checkpoint_every = settings.checkpoint_every,
              .keep_checkpoints = settings.keep_checkpoints,
              .metadata = corpus.metadata});
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

// Prints what a model has learned. Returns whether that is enough.
bool report_result(const Settings& settings, const Corpus& corpus, Trainer& trainer, const fs::path& folder) {
  // A task is scored as `fovea eval` does it: with averaged weights, if there are any.
  if (settings.text.empty()) return print_score(settings, load_run(folder, /*best=*/false).model);
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
  const Corpus corpus = open_corpus_of(settings);
  Rng rng(settings.seed);
  const Model model(settings.recipe, corpus.vocabulary, corpus.context, rng);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(settings.recipe, named_parameters(model));
  std::optional<Interrupt> interrupt(std::in_place);
  Trainer trainer(model, *optimizer, corpus.training, trainer_options(settings, corpus));
  add_stop_conditions(trainer, settings, corpus, *interrupt);
  if (!opened) opened = new_folder(settings, settings_text);
  const fs::path folder = opened->path();
  const Run run = open_run(settings, std::move(*opened), trainer, corpus);

  put(stdout, beginning_text(settings, corpus, trainer, run));
  Progress progress(stdout);
  trainer.on_step(std::ref(progress));
  trainer.on_evaluation(std::ref(progress));
  // The Run saves before this is called, unless the error is that it can't.
  trainer.on_failure([&] {
    progress.end_line();
    put(stdout,
        fmt::format("\n{:<10} {}: the latest checkpoint is {}\n", "run", detail::printable(folder.string()),
                    latest_checkpoint(folder)->filename().string()));
  });
  const StopReason reason = trainer.run();
  progress.end_line();
  put(stdout, status_text(trainer.status(), reason, progress.seconds(), folder));
  if (reason == StopReason::interrupted) {
    print_error(fmt::format("interrupted at step {}; continue with: fovea train --resume {}",
                            trainer.status().step, detail::printable(folder.string())));
    return interrupt->exit_status();
  }
  interrupt.reset();  // all is saved, so that a signal may end the program at once
  return report_result(settings, corpus, trainer, folder) ? 0 : 1;
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
