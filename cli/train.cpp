#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
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
#include "fovea/train/loop/run_folder.h"
#include "fovea/train/loop/trainer.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;

// runs/copy, or the first of runs/copy-2, runs/copy-3, ... that is not there yet.
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

TrainerOptions options_of(const Settings& settings, const Corpus& corpus, const fs::path& folder) {
  const Recipe& recipe = settings.recipe;
  TrainerOptions options;
  options.steps = recipe.steps;
  options.learning_rate = make_schedule(recipe);
  options.accumulate = recipe.accumulate;
  if (recipe.clip > 0) options.clip = recipe.clip;
  options.average = recipe.ema_decay;
  options.outlier = settings.skip_outliers;
  options.seed = settings.seed;
  options.evaluation = corpus.validation;
  if (corpus.validation) options.evaluate_every = settings.evaluate_every;
  options.patience = settings.patience;
  if (settings.minutes > 0) options.seconds = 60 * settings.minutes;
  if (settings.max_tokens > 0) options.tokens = settings.max_tokens;
  options.folder = folder;
  options.checkpoint_every = settings.checkpoint_every;
  options.keep = settings.keep;
  options.metadata = corpus.metadata;
  return options;
}

const char* reason(Ending ending) {
  switch (ending) {
    case Ending::early_stop:
      return "no better evaluation for a while";
    case Ending::out_of_time:
      return "its time is up";
    case Ending::out_of_tokens:
      return "it has had its tokens";
    case Ending::interrupted:
      return "interrupted";
    case Ending::data_ended:
      return "the data has ended";
    case Ending::finished:
      break;
  }
  return "finished";
}

TrainingResult run(Trainer& trainer) {
  Progress progress(stdout);
  trainer.on_step(std::ref(progress));
  trainer.on_evaluation(std::ref(progress));
  return trainer.run();
}

void print_ending(const TrainingResult& result, const fs::path& folder) {
  fmt::print("\n{:<10} {} steps, {} tokens in {:.1f} s: {}\n", "training", with_commas(result.step),
             with_commas(result.tokens), result.seconds, reason(result.ending));
  if (result.skipped_non_finite + result.skipped_outliers > 0) {
    fmt::print("{:<10} {} steps with a gradient that is not finite, {} with an outlier of a loss\n",
               "skipped", result.skipped_non_finite, result.skipped_outliers);
  }
  fmt::print("{:<10} {}\n", "run", folder.string());
}

// The settings of a new run: they are there as a whole or not at all.
void write_settings(const fs::path& folder, const std::string& text) {
  const fs::path path = folder / settings_file;
  const fs::path temporary = folder / (std::string(settings_file) + ".tmp");
  if (fs::exists(path)) {
    throw FileError(
        fmt::format("{} has a run already: go on with fovea train --resume {}, or name another folder",
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

int train(const Settings& settings, const std::string& settings_text) {
  set_threads(settings.threads);
  const Corpus corpus = open_corpus(settings);
  Rng rng(settings.seed);
  const Model model(settings.recipe, corpus.vocabulary, corpus.context, rng);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(settings.recipe, named_parameters(model));
  const fs::path folder = folder_of(settings);
  const Interrupt interrupt;
  TrainerOptions options = options_of(settings, corpus, folder);
  options.stop = [&] { return interrupt.requested(); };
  Trainer trainer(model, *optimizer, corpus.training, options);
  if (settings.resume.empty()) {
    write_settings(folder, settings_text);
  } else if (const auto checkpoint = latest_checkpoint(folder)) {
    check_same_data(corpus, read_safetensors_header(*checkpoint).metadata);
    trainer.resume();
  }

  fmt::print("{}\n{}\nseed {}, threads {}\n\n", corpus.description, trainer.summary(), settings.seed,
             threads());
  const TrainingResult result = run(trainer);
  print_ending(result, folder);
  if (result.ending == Ending::interrupted) {
    std::fflush(stdout);
    fmt::print(stderr, "fovea: interrupted at step {}; go on with: fovea train --resume {}\n", result.step,
               folder.string());
    return interrupt.exit_status();
  }
  // As `fovea eval` would: by averaged weights, where there are any.
  if (settings.text.empty()) return print_score(settings, open_run(folder, /*best=*/false).model) ? 0 : 1;
  if (corpus.validation) {
    const EvaluationReport report = trainer.evaluate();
    print_loss({report.loss, report.tokens});
  }
  return 0;
}

}  // namespace

Command train_command(CLI::App& program) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* parser = program.add_subcommand(
      "train", "Train a model on a task or a text; shows what it has learned, and writes a run's folder");
  add_options(*parser, *settings);
  return {parser, [parser, settings] { return train(*settings, parser->config_to_str(true)); }};
}

}  // namespace fovea::cli
