#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

#include "fovea/layers/gpt.h"
#include "fovea/train/loop/run.h"
#include "fovea/train/loop/trainer.h"
#include "fovea/train/optimizers/schedule.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

// A small training run with everything that has a state, for the tests of Run.
namespace fovea {

namespace fs = std::filesystem;

inline constexpr std::int64_t steps = 13;

inline std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline Batch draw(std::int64_t rows, Rng& rng) {
  const auto fill = [&](std::int64_t* ids) {
    for (std::int64_t i = 0; i < rows * 5; ++i) ids[i] = rng.uniform_int(11);
  };
  const Indices inputs({rows, 5}, fill);
  return {inputs, Indices({rows, 5}, fill)};
}

struct Failure : std::runtime_error {
  Failure() : runtime_error("failed") {}
};

// A model, an optimizer and a trainer with everything that has a state: dropout, accumulation, averages,
// losses to recognise outliers by, evaluation.
struct Training {
  Rng rng{7};
  Gpt model{{.vocabulary = 11,
             .context = 5,
             .d_model = 6,
             .heads = 2,
             .layers = 1,
             .block = {.attention = {.dropout = 0.2}, .dropout = 0.2}},
            rng};
  std::unique_ptr<Optimizer> optimizer;
  BatchSource source = [](std::int64_t index, Rng& its_rng) -> std::optional<Batch> {
    return draw(1 + index % 2, its_rng);
  };
  TrainerOptions options;
  RunOptions run_options{.checkpoint_every = 3, .metadata = {{"task", "none"}}};
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Run> run;

  explicit Training(bool muon = false)
      : options{.steps = steps,
                .learning_rate =
                    Schedule({.kind = LrSchedule::cosine, .rate = 0.03, .steps = steps, .warmup = 2}),
                .accumulate = 3,
                .clip = 0.5,
                .ema_decay = 0.6,
                .skip_loss_above_sigma = 3,
                .seed = 3,
                .evaluate_every = 4} {
    if (muon) {
      optimizer = std::make_unique<Muon>(named_parameters(model));
    } else {
      optimizer = std::make_unique<AdamW>(named_parameters(model));
    }
    options.evaluation = [](std::int64_t index) -> std::optional<Batch> {
      Rng of_batch(static_cast<std::uint64_t>(index));
      return index < 2 ? std::optional(draw(3, of_batch)) : std::nullopt;
    };
  }

  Trainer& trainer() {
    if (!trainer_) {
      trainer_ = std::make_unique<Trainer>(model, *optimizer, source, options);
    }
    return *trainer_;
  }
  void open(const fs::path& folder) { run = std::make_unique<Run>(folder, trainer(), run_options); }
  void resume(const fs::path& folder) {
    run_options.resume = true;
    open(folder);
  }
  StopReason train_in(const fs::path& folder) {
    open(folder);
    return trainer().run();
  }
  StopReason resume_in(const fs::path& folder) {
    resume(folder);
    return trainer().run();
  }
  void stop_at(std::int64_t step) {
    trainer().stop_when([=](const TrainerStatus& status) {
      return status.step == step ? std::optional(StopReason::interrupted) : std::nullopt;
    });
  }
};

// Trains in the folder up to a step, and leaves what a program leaves that is killed there: the checkpoints
// of that moment, and logs that have gone on since.
inline void train_and_die(const fs::path& folder, std::int64_t step, bool muon = false) {
  const fs::path checkpoints = folder / "checkpoints", kept = folder / "kept";
  {
    Training training(muon);
    training.open(folder);
    training.trainer().on_step([&](const StepReport& report) {
      if (report.step != step) return;
      fs::copy(checkpoints, kept);
      throw Failure();
    });
    CHECK_THROWS_AS(training.trainer().run(), Failure);
  }
  fs::remove_all(checkpoints);
  fs::rename(kept, checkpoints);
}

inline std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Everything but the times in TensorBoard's events must be the same.
inline void check_same_run(const fs::path& a, const fs::path& b) {
  CHECK(bytes_of(a / "log.jsonl") == bytes_of(b / "log.jsonl"));
  CHECK(fs::file_size(a / "events.out.tfevents.fovea") == fs::file_size(b / "events.out.tfevents.fovea"));
  CHECK(names_in(a) == names_in(b));
  const std::vector<std::string> names = names_in(a / "checkpoints");
  CHECK(names == names_in(b / "checkpoints"));
  for (const std::string& name : names) {
    INFO(name);
    CHECK((bytes_of(a / "checkpoints" / name) == bytes_of(b / "checkpoints" / name)));
  }
}

}  // namespace fovea
