#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/corpus.h"
#include "cli/model.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/train/loop/interrupt.h"
#include "fovea/train/loop/progress.h"
#include "fovea/train/loop/run.h"
#include "fovea/train/loop/stop_conditions.h"
#include "fovea/train/loop/trainer.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

// runs/NAME, or the first of runs/NAME-2, runs/NAME-3, ... that does not exist.
fs::path new_folder(const Settings& settings) {
  const std::string name = settings.text.empty() ? settings.task : fs::path(settings.text).stem().string();
  fs::path folder = fs::path("runs") / name;
  for (int number = 2; fs::exists(folder); ++number) {
    folder = fs::path("runs") / fmt::format("{}-{}", name, number);
  }
  return folder;
}

fs::path folder_of(const Settings& settings) {
  if (!settings.resume.empty()) return settings.resume;
  return settings.run.empty() ? new_folder(settings) : fs::path(settings.run);
}

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

// Saves the settings of a new run. The file appears complete or not at all.
void write_settings(const fs::path& folder, const std::string& text) {
  const fs::path path = folder / settings_file;
  const fs::path temporary = folder / (std::string(settings_file) + ".tmp");
  if (fs::exists(path)) {
    throw FileError(
        fmt::format("{} has a run already: continue it with fovea train --resume {}, or name another folder",
                    folder.string(), folder.string()));
  }
  std::error_code error;
  fs::create_directories(folder, error);
  std::ofstream file(temporary);
  file << text;
  file.close();
  if (!error && !file) error.assign(errno, std::generic_category());
  if (!error) fs::rename(temporary, path, error);
  if (error) throw FileError(fmt::format("can't write {}: {}", path.string(), error.message()));
}

Corpus open_corpus_of(const Settings& settings) {
  if (settings.resume.empty()) return open_corpus(settings);
  check_text_is_there(settings);
  const std::optional<fs::path> checkpoint = latest_checkpoint(settings.resume);
  return checkpoint ? open_corpus(settings, read_safetensors_header(*checkpoint).metadata)
                    : open_corpus(settings);
}

// A run that was killed before its first checkpoint is resumed from its beginning.
Run open_run(const Settings& settings, const fs::path& folder, Trainer& trainer, const Corpus& corpus) {
  const std::optional<fs::path> checkpoint = latest_checkpoint(folder);
  const bool resume = !settings.resume.empty() && checkpoint;
  if (resume) check_same_data(corpus, read_safetensors_header(*checkpoint).metadata);
  return Run(folder, trainer,
             {.resume = resume,
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

void print_status(const TrainerStatus& status, StopReason reason, double seconds, const fs::path& folder) {
  fmt::print("\n{:<10} {} steps, {} tokens in {:.1f} s: {}\n", "training", with_commas(status.step),
             with_commas(status.tokens), seconds, describe(reason));
  if (status.skipped_non_finite + status.skipped_outliers > 0) {
    fmt::print("{:<10} {} steps whose loss or gradient was not finite, {} whose loss was an outlier\n",
               "skipped", status.skipped_non_finite, status.skipped_outliers);
  }
  fmt::print("{:<10} {}\n", "run", detail::printable(folder.string()));
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
  const Corpus corpus = open_corpus_of(settings);
  if (const auto checkpoint = latest_checkpoint(settings.resume); !settings.resume.empty() && checkpoint)
    check_model_sizes(settings.recipe, corpus.vocabulary, corpus.context, *checkpoint);
  Rng rng(settings.seed);
  const Model model(settings.recipe, corpus.vocabulary, corpus.context, rng);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(settings.recipe, named_parameters(model));
  const Interrupt interrupt;
  Trainer trainer(model, *optimizer, corpus.training, trainer_options(settings, corpus));
  add_stop_conditions(trainer, settings, corpus, interrupt);
  const fs::path folder = folder_of(settings);
  if (settings.resume.empty()) write_settings(folder, settings_text);
  const Run run = open_run(settings, folder, trainer, corpus);

  fmt::print("{}\n{}\nseed {}, threads {}\n\n", corpus.description, trainer.summary(), settings.seed,
             threads());
  if (!settings.note.empty()) fmt::print("{}\n\n", settings.note);
  Progress progress(stdout);
  trainer.on_step(std::ref(progress));
  trainer.on_evaluation(std::ref(progress));
  const StopReason reason = trainer.run();
  progress.end_line();
  print_status(trainer.status(), reason, progress.seconds(), folder);
  if (reason == StopReason::interrupted) {
    std::fflush(stdout);
    fmt::print(stderr, "fovea: interrupted at step {}; continue with: fovea train --resume {}\n",
               trainer.status().step, detail::printable(folder.string()));
    return interrupt.exit_status();
  }
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
