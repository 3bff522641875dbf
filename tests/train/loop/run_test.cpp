// What a run is, whole or stopped and resumed: the same bits.

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "tests/train/loop/training_run.h"

namespace fovea {
namespace {

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

}  // namespace
}  // namespace fovea
