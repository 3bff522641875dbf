#include "fovea/train/loop/run.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "fovea/layers/gpt.h"
#include "fovea/train/loop/trainer.h"
#include "fovea/train/optimizers/schedule.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t steps = 13;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

Batch draw(std::int64_t rows, Rng& rng) {
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
void train_and_die(const fs::path& folder, std::int64_t step, bool muon = false) {
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

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Everything but the times in TensorBoard's events must be the same.
void check_same_run(const fs::path& a, const fs::path& b) {
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

TEST_CASE("Run: a resumed run has the same bits as one that was never stopped", "[trainer]") {
  const bool muon = GENERATE(false, true);
  const TemporaryFolder folder;
  CHECK(Training(muon).train_in(folder / "whole") == StopReason::all_steps);
  CHECK(names_in(folder / "whole/checkpoints") == std::vector<std::string>{"best.safetensors",
                                                                           "step-00000012.safetensors",
                                                                           "step-00000013.safetensors"});

  // Stopped by a condition, so that it saves.
  for (const std::int64_t step : muon ? std::vector<std::int64_t>{5} : std::vector<std::int64_t>{4, 6, 11}) {
    INFO("stopped at step " << step);
    const fs::path path = folder / ("stopped" + std::to_string(step));
    {
      Training first(muon);
      first.stop_at(step);
      CHECK(first.train_in(path) == StopReason::interrupted);
    }
    Training second(muon);
    second.resume(path);
    CHECK(second.trainer().status().step == step);
    second.trainer().run();
    check_same_run(folder / "whole", path);
  }
  // As if killed, so that it goes back to its latest checkpoint.
  for (const std::int64_t step : muon ? std::vector<std::int64_t>{8} : std::vector<std::int64_t>{1, 5, 12}) {
    INFO("killed at step " << step);
    const fs::path path = folder / ("killed" + std::to_string(step));
    train_and_die(path, step, muon);
    Training second(muon);
    second.resume(path);
    CHECK(second.trainer().status().step == (step - 1) / 3 * 3);
    second.trainer().run();
    check_same_run(folder / "whole", path);
  }
}

// What may throw while a run trains.
enum class Part { source, model, on_step, evaluation, on_evaluation, on_step_end };

Indices outside_vocabulary() {
  return {Shape{1, 2}, [](std::int64_t* ids) { ids[0] = ids[1] = 99; }};
}

// Makes a part of the training throw at a step. Callbacks are added before the Run adds its own.
void fail_in(Part part, std::int64_t step, Training& training) {
  Trainer& trainer = training.trainer();
  const auto fail_at = [step](std::int64_t found) {
    if (found == step) throw Failure();
  };
  if (part == Part::on_step) trainer.on_step([=](const StepReport& report) { fail_at(report.step); });
  if (part == Part::on_evaluation)
    trainer.on_evaluation([=](const EvaluationReport& report) { fail_at(report.step); });
  if (part == Part::on_step_end)
    trainer.on_step_end([=, &trainer](std::optional<StopReason>) { fail_at(trainer.status().step); });
}

TEST_CASE("Run: what was learned before an error is saved, and resuming gives the same bits", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  const auto [part, step] = GENERATE(table<Part, std::int64_t>({{Part::source, 5},
                                                                {Part::model, 8},
                                                                {Part::on_step, 5},
                                                                {Part::on_step, 12},
                                                                {Part::evaluation, 4},
                                                                {Part::evaluation, 12},
                                                                {Part::evaluation, 13},
                                                                {Part::on_evaluation, 12},
                                                                {Part::on_step_end, 7},
                                                                {Part::on_step_end, 13}}));
  INFO("part " << static_cast<int>(part) << " fails at step " << step);
  {
    Training training;
    Trainer* trainer = nullptr;
    const auto here = [&, part = part, step = step](Part each) {
      return each == part && trainer && trainer->status().step == step;
    };
    training.options.evaluation = [&, whole = training.options.evaluation](std::int64_t index) {
      if (index == 1 && here(Part::evaluation)) throw Failure();
      return whole(index);
    };
    // The source fails within a step, whose first batch has been drawn and has moved the generators.
    training.source = [&, whole = training.source](std::int64_t index, Rng& rng) {
      if (index % 3 == 1 && here(Part::source)) throw Failure();
      std::optional<Batch> batch = whole(index, rng);
      if (index % 3 == 2 && here(Part::model)) batch->inputs = outside_vocabulary();
      return batch;
    };
    trainer = &training.trainer();
    fail_in(part, step, training);
    training.open(folder / "a");
    CHECK_THROWS(trainer->run());
    CHECK(trainer->status().step == step);
  }
  Training again;
  again.resume(folder / "a");
  CHECK(again.trainer().status().step == step);
  again.trainer().run();
  check_same_run(folder / "whole", folder / "a");
}

TEST_CASE("Run: an evaluation and a step that are interrupted are made when the run is resumed",
          "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  const auto [in_evaluation, step] =
      GENERATE(table<bool, std::int64_t>({{true, 4}, {true, 12}, {true, 13}, {false, 5}}));
  INFO((in_evaluation ? "evaluation" : "step") << " after step " << step);
  bool interrupted = false;
  {
    Training training;
    Trainer* trainer = nullptr;
    const auto interrupt = [&, step = step] {
      interrupted = interrupted || (trainer && trainer->status().step == step);
    };
    training.options.evaluation = [&, in_evaluation = in_evaluation,
                                   whole = training.options.evaluation](std::int64_t index) {
      CHECK_FALSE(interrupted);
      if (in_evaluation) interrupt();
      return whole(index);
    };
    training.source = [&, in_evaluation = in_evaluation, whole = training.source](std::int64_t index,
                                                                                  Rng& rng) {
      CHECK_FALSE(interrupted);
      if (!in_evaluation) interrupt();
      return whole(index, rng);
    };
    trainer = &training.trainer();
    trainer->stop_when([&](const TrainerStatus&) {
      return interrupted ? std::optional(StopReason::interrupted) : std::nullopt;
    });
    trainer->on_evaluation([step = step](const EvaluationReport& report) { CHECK(report.step < step); });
    CHECK(training.train_in(folder / "a") == StopReason::interrupted);
    CHECK(trainer->status().step == step);
  }
  Training again;
  again.resume_in(folder / "a");
  check_same_run(folder / "whole", folder / "a");
}

TEST_CASE("Run: training that stops and continues under the same Run has the same bits", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  Training training;
  bool stopped = false;
  training.trainer().stop_when([&](const TrainerStatus& status) {
    const bool stop = status.step == 5 && !std::exchange(stopped, true);
    return stop ? std::optional(StopReason::interrupted) : std::nullopt;
  });
  CHECK(training.train_in(folder / "a") == StopReason::interrupted);
  CHECK(latest_checkpoint(folder / "a") == folder / "a/checkpoints/step-00000005.safetensors");
  CHECK(training.trainer().run() == StopReason::all_steps);
  check_same_run(folder / "whole", folder / "a");
}

TEST_CASE("Run: a time budget leaves no trace in a resumed run", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  for (int i = 0; i < 4; ++i) {
    Training part;
    part.run_options.resume = i > 0;
    part.trainer().stop_when(time_budget(1e-12));
    CHECK(part.train_in(folder / "parts") == StopReason::time_budget);
    CHECK(part.trainer().status().step == i + 1);
    CHECK_NOTHROW(part.trainer().evaluate());
  }
  Training().resume_in(folder / "parts");
  check_same_run(folder / "whole", folder / "parts");
}

TEST_CASE("Run: the same bits for any number of threads", "[trainer]") {
  const TemporaryFolder folder;
  const int before = threads();
  for (const int n : {1, 3}) {
    set_threads(n);
    Training().train_in(folder / std::to_string(n));
  }
  set_threads(before);
  check_same_run(folder / "1", folder / "3");
}

TEST_CASE("Run: a complete run that is resumed stays as it is, or continues to more steps", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "a");
  Training().train_in(folder / "whole");
  CHECK(Training().resume_in(folder / "a") == StopReason::all_steps);
  check_same_run(folder / "whole", folder / "a");

  Training more;
  more.options.steps = steps + 2;
  more.resume_in(folder / "a");
  CHECK(more.trainer().status().step == steps + 2);
  CHECK(bytes_of(folder / "a/log.jsonl").starts_with(bytes_of(folder / "whole/log.jsonl")));
}

TEST_CASE("Run: the latest checkpoints are kept, and the best", "[trainer]") {
  const TemporaryFolder folder;
  Training training;
  training.run_options.keep_checkpoints = 3;
  training.run_options.checkpoint_every = 2;
  double lowest = 1e9;
  std::int64_t lowest_at = 0;
  training.trainer().on_evaluation([&](const EvaluationReport& report) {
    CHECK(report.best == (report.loss < lowest));
    if (!report.best) return;
    lowest = report.loss;
    lowest_at = report.step;
  });
  training.train_in(folder / "a");
  CHECK(training.trainer().status().best_evaluation == lowest);
  CHECK(names_in(folder / "a/checkpoints") ==
        std::vector<std::string>{"best.safetensors", "step-00000010.safetensors", "step-00000012.safetensors",
                                 "step-00000013.safetensors"});
  CHECK(latest_checkpoint(folder / "a") == folder / "a/checkpoints/step-00000013.safetensors");
  CHECK(best_checkpoint(folder / "a") == folder / "a/checkpoints/best.safetensors");
  CHECK_FALSE(latest_checkpoint(folder / "b"));
  CHECK_FALSE(best_checkpoint(folder / "b"));

  // The averaged weights of the best checkpoint have the loss for which it was saved.
  const SafetensorsFile best = load_safetensors(*best_checkpoint(folder / "a"));
  CHECK(best.metadata.at("task") == "none");
  CHECK_THAT(best.metadata.at("fovea.trainer"),
             ContainsSubstring("\"step\":" + std::to_string(lowest_at) + ","));
  Training other;
  other.options.ema_decay = 0;
  load_model(other.model, best, {.average = true});
  CHECK(other.trainer().evaluate().loss == lowest);
  load_model(other.model, *best_checkpoint(folder / "a"));
  CHECK(other.trainer().evaluate().loss != lowest);
}

TEST_CASE("Run: options outside their range are errors", "[trainer]") {
  const TemporaryFolder folder;
  const auto with = [&](const RunOptions& options) {
    Training training;
    training.run_options = options;
    training.open(folder / "a");
  };
  CHECK_THROWS_WITH(with({.checkpoint_every = -1}), ContainsSubstring("checkpoint_every is -1"));
  CHECK_THROWS_AS(with({.keep_checkpoints = 0}), ValueError);
  CHECK_THROWS_AS(with({.metadata = {{"fovea.trainer", "x"}}}), ValueError);
  CHECK_THROWS_AS(with({.metadata = {{"fovea.log_sizes", "x"}}}), ValueError);
  CHECK_FALSE(fs::exists(folder / "a"));
}

TEST_CASE("Run: a folder with a run is not overwritten", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "a");
  const std::string log = bytes_of(folder / "a/log.jsonl");
  const std::vector<std::string> checkpoints = names_in(folder / "a/checkpoints");
  Training keeps_one;
  keeps_one.run_options.keep_checkpoints = 1;
  CHECK_THROWS_WITH(keeps_one.open(folder / "a"), ContainsSubstring("has a run already: set .resume"));
  CHECK(names_in(folder / "a/checkpoints") == checkpoints);
  fs::remove_all(folder / "a/checkpoints");
  CHECK_THROWS_WITH(Training().open(folder / "a"), ContainsSubstring("has a run already"));
  CHECK(bytes_of(folder / "a/log.jsonl") == log);
  CHECK_THROWS_WITH(Training().resume(folder / "a"), ContainsSubstring("there is no checkpoint in"));
  CHECK_THROWS_WITH(Training().resume(folder / "b"), ContainsSubstring("can't open the folder"));
  CHECK_FALSE(fs::exists(folder / "b"));

  write(folder / "file", "");
  CHECK_THROWS_WITH(Training().open(folder / "file"), ContainsSubstring("can't make the folder"));
}

TEST_CASE("Run: only one Run at a time has a folder", "[trainer]") {
  const TemporaryFolder folder;
  Training first;
  first.open(folder / "a");
  first.trainer().on_step([&](const StepReport& report) {
    if (report.step != 2) return;
    Training second;
    CHECK_THROWS_WITH(second.resume(folder / "a"), ContainsSubstring("another run is being written in"));
    CHECK(second.trainer().status().step == 0);
  });
  CHECK(first.trainer().run() == StopReason::all_steps);
}

TEST_CASE("Run: a damaged checkpoint is an error that names the one before it", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  Training().train_in(folder / "a");
  const fs::path latest = *latest_checkpoint(folder / "a");
  fs::resize_file(latest, fs::file_size(latest) - 1);
  Training again;
  again.run_options.keep_checkpoints = 1;
  const std::vector<double> before = again.model.token_embedding.table.to_vector();
  CHECK_THROWS_WITH(again.resume(folder / "a"),
                    ContainsSubstring("step-00000013.safetensors") &&
                        ContainsSubstring("The checkpoint before it is 'step-00000012.safetensors'"));
  CHECK(again.model.token_embedding.table.to_vector() == before);
  CHECK(again.trainer().status().step == 0);
  fs::remove(latest);
  again.run_options.keep_checkpoints = 2;
  again.resume_in(folder / "a");
  check_same_run(folder / "whole", folder / "a");
}

TEST_CASE("Run: a checkpoint that does not fit the trainer is an error, and changes nothing", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "a");
  const std::string log = bytes_of(folder / "a/log.jsonl");
  Training other(true);
  const std::vector<double> before = other.model.token_embedding.table.to_vector();
  CHECK_THROWS_WITH(other.resume(folder / "a"),
                    ContainsSubstring("belongs to another model, optimizer or ema_decay") &&
                        ContainsSubstring("unexpected: optimizer.token_embedding.table.m"));
  CHECK(other.model.token_embedding.table.to_vector() == before);
  CHECK(bytes_of(folder / "a/log.jsonl") == log);

  // Metadata that no Run has written, in a file that is otherwise right.
  const fs::path latest = *latest_checkpoint(folder / "a");
  const SafetensorsFile file = load_safetensors(latest);
  const auto check_metadata = [&](const char* key, const std::string& text, const char* message) {
    INFO(key << ": " << text.substr(0, 20));
    Metadata metadata = file.metadata;
    metadata[key] = text;
    save_safetensors(latest, file.state, metadata);
    Training training;
    CHECK_THROWS_WITH(training.resume(folder / "a"), ContainsSubstring(message));
    CHECK(training.trainer().status().step == 0);
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = file.metadata.at("fovea.trainer");
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1"), with("\"step\":13", "\"step\":-13"),
        with("\"step\":13", "\"step\":1e300"), with(R"("step":13)", R"("step":"13")"),
        with("\"version\":2", "\"version\":3"), std::string(100000, '[')})
    check_metadata("fovea.trainer", text, "does not hold the status of a trainer");
  for (const char* text : {"", "[1]", "{\"log.jsonl\":-1}", "{\"log.jsonl\":1.5}", R"({"log.jsonl":"1"})"})
    check_metadata("fovea.log_sizes", text, "does not hold the sizes of the logs");
}

TEST_CASE("Run: a checkpoint of another build is noticed, and resumed", "[trainer]") {
  const TemporaryFolder folder;
  {
    Training first;
    first.stop_at(5);
    first.train_in(folder / "a");
    CHECK(first.run->notice().empty());
  }
  {
    Training same;
    same.resume(folder / "a");
    CHECK(same.run->notice().empty());
  }
  const fs::path latest = *latest_checkpoint(folder / "a");
  const SafetensorsFile file = load_safetensors(latest);
  const std::string here = file.metadata.at("fovea.build");
  CHECK_THAT(here, ContainsSubstring("fovea ") && ContainsSubstring("Eigen 3."));
  Metadata metadata = file.metadata;
  metadata["fovea.build"] = "fovea 9.9\x1b[2J";
  save_safetensors(latest, file.state, metadata);
  {
    Training other;
    other.resume(folder / "a");
    CHECK_THAT(other.run->notice(),
               ContainsSubstring("another build has trained this run until now (fovea 9.9\\x1b[2J; this is " +
                                 here));
  }
  metadata.erase("fovea.build");
  save_safetensors(latest, file.state, metadata);
  Training unnamed;
  CHECK(unnamed.resume_in(folder / "a") == StopReason::all_steps);
  CHECK_THAT(unnamed.run->notice(), ContainsSubstring("it is not named"));
}

TEST_CASE("Run: a log that has become shorter since the checkpoint is an error, a longer one is cut",
          "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  train_and_die(folder / "a", 8);

  const fs::path log = folder / "a/log.jsonl";
  const std::string text = bytes_of(log);
  write(log, "short");
  CHECK_THROWS_WITH(Training().resume(folder / "a"),
                    ContainsSubstring("log.jsonl' has 5 bytes, but it had") &&
                        ContainsSubstring("remove it to begin it anew"));
  CHECK(bytes_of(log) == "short");
  write(log, text + "a line of another future\n");
  Training().resume_in(folder / "a");
  check_same_run(folder / "whole", folder / "a");
}

TEST_CASE("Run: a log that was removed starts empty", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  train_and_die(folder / "a", 8);
  const std::string events_name = "events.out.tfevents.fovea";
  fs::remove(folder / "a" / events_name);
  Training().resume_in(folder / "a");
  CHECK(bytes_of(folder / "a/log.jsonl") == bytes_of(folder / "whole/log.jsonl"));
  const std::string events = bytes_of(folder / "a" / events_name);
  CHECK_THAT(events, ContainsSubstring("brain.Event:2"));
  CHECK(events.size() < fs::file_size(folder / "whole" / events_name));
}

TEST_CASE("Run: nothing in its folder is followed out of it", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  const std::string latest = "checkpoints/step-00000013.safetensors";
  for (const std::string& name : {std::string("log.jsonl"), std::string("events.out.tfevents.fovea"), latest,
                                  std::string("checkpoints")}) {
    const auto check_refused = [&](const char* kind, const auto& make) {
      INFO(name << " is " << kind);
      const fs::path run = folder / "run";
      fs::remove_all(run);
      fs::copy(folder / "whole", run, fs::copy_options::recursive);
      fs::rename(run / name, folder / "mine");
      make(run / name);
      CHECK_THROWS_WITH(Training().resume(run),
                        ContainsSubstring((run / name).string()) && ContainsSubstring(kind));
      const bool is_folder = name == "checkpoints";
      const fs::path kept = is_folder ? folder / "mine/step-00000013.safetensors" : folder / "mine";
      CHECK(bytes_of(kept) == bytes_of(folder / "whole" / (is_folder ? latest : name)));
      fs::remove_all(folder / "mine");
    };
    check_refused("is a symbolic link",
                  [&](const fs::path& path) { fs::create_symlink(folder / "mine", path); });
    check_refused("is a named pipe", [](const fs::path& path) { REQUIRE(mkfifo(path.c_str(), 0600) == 0); });
    if (name != "checkpoints") {
      check_refused("is a folder", [](const fs::path& path) { fs::create_directory(path); });
    } else {
      check_refused("is a regular file", [](const fs::path& path) { write(path, ""); });
    }
    if (!name.starts_with("checkpoints"))
      check_refused("hard links", [&](const fs::path& path) { fs::create_hard_link(folder / "mine", path); });
  }
}

TEST_CASE("Run: a link in place of its best checkpoint is an error", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "a");
  const fs::path best = *best_checkpoint(folder / "a");
  fs::rename(best, folder / "mine");
  fs::create_symlink(folder / "mine", best);
  CHECK_THROWS_WITH(best_checkpoint(folder / "a"), ContainsSubstring("best.safetensors' is a symbolic link"));
}

TEST_CASE("Run: logs are not begun through links that lead nowhere", "[trainer]") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  fs::create_symlink(folder / "mine", folder / "a/log.jsonl");
  CHECK_THROWS_WITH(Training().open(folder / "a"), ContainsSubstring("has a run already"));
  CHECK_FALSE(fs::exists(folder / "mine"));
}

// While it lives, files cannot grow beyond a size, as on a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_CASE("Run: a full disk ends training with an error, and the latest checkpoint remains", "[trainer]") {
  const TemporaryFolder folder;
  Training().train_in(folder / "whole");
  const bool of_log = GENERATE(true, false);
  const auto size = fs::file_size(folder / "whole/log.jsonl");
  REQUIRE(size < fs::file_size(folder / "whole/checkpoints/step-00000013.safetensors"));

  {
    Training training;
    training.open(folder / "a");
    std::unique_ptr<FileLimit> limit;
    training.trainer().on_step([&](const StepReport& report) {
      if (report.step == 7) limit = std::make_unique<FileLimit>(of_log ? 300 : size);
    });
    try {
      training.trainer().run();
      FAIL("training went on");
    } catch (const FileError& error) {
      limit.reset();
      CHECK_THAT(error.what(), ContainsSubstring((folder / "a").string()));
      CHECK_THAT(error.what(), ContainsSubstring(of_log ? "can't write" : "[save_safetensors] can't write"));
    }
  }
  CHECK(latest_checkpoint(folder / "a") == folder / "a/checkpoints/step-00000006.safetensors");
  Training().resume_in(folder / "a");
  check_same_run(folder / "whole", folder / "a");
}

}  // namespace
}  // namespace fovea
