#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "fovea/autograd/base/parallel.h"
#include "fovea/layers/gpt.h"
#include "fovea/train/loop/run_folder.h"
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

struct Death : std::runtime_error {
  Death() : runtime_error("died") {}
};

// A run with all that has a state: dropout, accumulation, averages, outliers, evaluation.
struct Run {
  Rng rng{7};
  Gpt model{{.vocabulary = 11,
             .context = 5,
             .d_model = 6,
             .heads = 2,
             .layers = 1,
             .block = {.attention = {.dropout = 0.2}, .dropout = 0.2}},
            rng};
  std::unique_ptr<Optimizer> optimizer;
  TrainerOptions options;
  std::unique_ptr<Trainer> trainer_;

  explicit Run(const fs::path& folder, bool muon = false)
      : options{.steps = steps,
                .learning_rate =
                    Schedule({.decay = LrSchedule::cosine, .rate = 0.03, .steps = steps, .warmup = 2}),
                .accumulate = 3,
                .clip = 0.5,
                .average = 0.6,
                .outlier = 3,
                .seed = 3,
                .evaluate_every = 4,
                .folder = folder,
                .checkpoint_every = 3,
                .metadata = {{"task", "none"}}} {
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
      const auto source = [](std::int64_t index, Rng& its_rng) -> std::optional<Batch> {
        return draw(1 + index % 2, its_rng);
      };
      trainer_ = std::make_unique<Trainer>(model, *optimizer, source, options);
    }
    return *trainer_;
  }
  void die_at(std::int64_t step) {
    trainer().on_step([=](const StepReport& report) {
      if (report.step == step) throw Death();
    });
  }
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// All that is a function of the run.
void check_same_run(const fs::path& a, const fs::path& b) {
  for (const char* log : {"log.jsonl", "log.csv"}) CHECK(bytes_of(a / log) == bytes_of(b / log));
  for (const char* log : {"times.csv", "events.out.tfevents.fovea"})
    CHECK(fs::file_size(a / log) == fs::file_size(b / log));
  const std::vector<std::string> names = names_in(a / "checkpoints");
  CHECK(names == names_in(b / "checkpoints"));
  for (const std::string& name : names) {
    INFO(name);
    CHECK((bytes_of(a / "checkpoints" / name) == bytes_of(b / "checkpoints" / name)));
  }
}

TEST_CASE("Trainer: resumed, a run has the same bits as one that never stopped", "[trainer]") {
  const bool muon = GENERATE(false, true);
  const TemporaryFolder folder;
  Run whole(folder / "whole", muon);
  CHECK(whole.trainer().run().ending == Ending::finished);
  CHECK(names_in(folder / "whole/checkpoints") == std::vector<std::string>{"best.safetensors",
                                                                           "step-00000012.safetensors",
                                                                           "step-00000013.safetensors"});

  // Asked to stop, so that it saves.
  for (const std::int64_t step : muon ? std::vector<std::int64_t>{5} : std::vector<std::int64_t>{4, 6, 11}) {
    INFO("stopped at step " << step);
    const fs::path path = folder / ("stopped" + std::to_string(step));
    Run first(path, muon);
    std::int64_t asked = 0;
    first.options.stop = [&] { return ++asked == step; };
    CHECK(first.trainer().run().ending == Ending::interrupted);
    Run second(path, muon);
    second.trainer().resume();
    CHECK(second.trainer().step() == step);
    second.trainer().run();
    check_same_run(folder / "whole", path);
  }
  // As if killed, so that it goes back to its last checkpoint.
  for (const std::int64_t step : muon ? std::vector<std::int64_t>{8} : std::vector<std::int64_t>{1, 5, 12}) {
    INFO("killed at step " << step);
    const fs::path path = folder / ("killed" + std::to_string(step));
    Run first(path, muon);
    first.die_at(step);
    CHECK_THROWS_AS(first.trainer().run(), Death);
    Run second(path, muon);
    second.trainer().resume();
    CHECK(second.trainer().step() == (step - 1) / 3 * 3);
    second.trainer().run();
    check_same_run(folder / "whole", path);
  }
}

TEST_CASE("Trainer: a time budget leaves no trace in a resumed run", "[trainer]") {
  const TemporaryFolder folder;
  Run(folder / "whole").trainer().run();
  for (int i = 0; i < 4; ++i) {
    Run part(folder / "parts");
    part.options.seconds = 1e-12;
    if (i > 0) part.trainer().resume();
    const TrainingResult result = part.trainer().run();
    CHECK(result.ending == Ending::out_of_time);
    CHECK(result.step == i + 1);
    CHECK(result.evaluation.has_value());
  }
  Run rest(folder / "parts");
  rest.trainer().resume();
  rest.trainer().run();
  check_same_run(folder / "whole", folder / "parts");
}

TEST_CASE("Trainer: the same bits for any number of threads", "[trainer]") {
  const TemporaryFolder folder;
  const int before = threads();
  for (const int n : {1, 3}) {
    set_threads(n);
    Run(folder / std::to_string(n)).trainer().run();
  }
  set_threads(before);
  check_same_run(folder / "1", folder / "3");
}

TEST_CASE("Trainer: a finished run that is resumed stays as it is, or goes on to more steps", "[trainer]") {
  const TemporaryFolder folder;
  Run first(folder / "a");
  first.trainer().run();
  const std::string log = bytes_of(folder / "a/log.jsonl");
  Run again(folder / "a");
  again.trainer().resume();
  CHECK(again.trainer().run().ending == Ending::finished);
  CHECK(bytes_of(folder / "a/log.jsonl") == log);

  Run more(folder / "a");
  more.options.steps = steps + 2;
  more.trainer().resume();
  CHECK(more.trainer().run().step == steps + 2);
  CHECK(bytes_of(folder / "a/log.jsonl").starts_with(log));
}

TEST_CASE("Trainer: the last checkpoints stay, and the best", "[trainer]") {
  const TemporaryFolder folder;
  Run run(folder / "a");
  run.options.keep = 3;
  run.options.checkpoint_every = 2;
  double lowest = 1e9;
  std::int64_t lowest_at = 0;
  run.trainer().on_evaluation([&](const EvaluationReport& report) {
    CHECK(report.best == (report.loss < lowest));
    if (!report.best) return;
    lowest = report.loss;
    lowest_at = report.step;
  });
  CHECK(run.trainer().run().best_evaluation == lowest);
  CHECK(names_in(folder / "a/checkpoints") ==
        std::vector<std::string>{"best.safetensors", "step-00000010.safetensors", "step-00000012.safetensors",
                                 "step-00000013.safetensors"});
  CHECK(latest_checkpoint(folder / "a") == folder / "a/checkpoints/step-00000013.safetensors");
  CHECK(best_checkpoint(folder / "a") == folder / "a/checkpoints/best.safetensors");
  CHECK_FALSE(latest_checkpoint(folder / "b"));
  CHECK_FALSE(best_checkpoint(folder / "b"));

  // The best one gives, with its averages, the loss that it was the best for.
  const SafetensorsFile best = load_safetensors(*best_checkpoint(folder / "a"));
  CHECK(best.metadata.at("task") == "none");
  CHECK_THAT(best.metadata.at("fovea.trainer"),
             ContainsSubstring("\"step\":" + std::to_string(lowest_at) + ","));
  Run other("");
  other.options.average = 0;
  other.options.checkpoint_every = 0;
  load_model(other.model, best, {.average = true});
  CHECK(other.trainer().evaluate().loss == lowest);
  load_model(other.model, *best_checkpoint(folder / "a"));
  CHECK(other.trainer().evaluate().loss != lowest);
}

TEST_CASE("Trainer: a folder with a run is not written over", "[trainer]") {
  const TemporaryFolder folder;
  Run(folder / "a").trainer().run();
  const std::string log = bytes_of(folder / "a/log.csv");
  CHECK_THROWS_WITH(Run(folder / "a").trainer().run(), ContainsSubstring("has a run already: resume it"));
  fs::remove_all(folder / "a/checkpoints");
  CHECK_THROWS_WITH(Run(folder / "a").trainer().run(), ContainsSubstring("has a run already"));
  CHECK(bytes_of(folder / "a/log.csv") == log);
  CHECK_THROWS_WITH(Run(folder / "a").trainer().resume(), ContainsSubstring("there is no checkpoint in"));
  CHECK_THROWS_WITH(Run(folder / "b").trainer().resume(), ContainsSubstring("there is no checkpoint in"));
  CHECK_FALSE(fs::exists(folder / "b"));

  write(folder / "file", "");
  CHECK_THROWS_WITH(Run(folder / "file").trainer().run(), ContainsSubstring("can't make the folder"));
}

TEST_CASE("Trainer: one at a time in a folder", "[trainer]") {
  const TemporaryFolder folder;
  Run first(folder / "a");
  first.trainer().on_step([&](const StepReport& report) {
    if (report.step != 2) return;
    Run second(folder / "a");
    second.trainer().resume();
    CHECK_THROWS_WITH(second.trainer().run(), ContainsSubstring("another program trains in"));
  });
  CHECK(first.trainer().run().ending == Ending::finished);
}

TEST_CASE("Trainer: a damaged checkpoint is an error that says what else there is", "[trainer]") {
  const TemporaryFolder folder;
  Run(folder / "whole").trainer().run();
  Run(folder / "a").trainer().run();
  const fs::path latest = *latest_checkpoint(folder / "a");
  fs::resize_file(latest, fs::file_size(latest) - 1);
  Run again(folder / "a");
  const std::vector<double> before = again.model.token_embedding.table.to_vector();
  CHECK_THROWS_WITH(again.trainer().resume(),
                    ContainsSubstring("step-00000013.safetensors") &&
                        ContainsSubstring("The checkpoint before it is 'step-00000012.safetensors'"));
  CHECK(again.model.token_embedding.table.to_vector() == before);
  CHECK(again.trainer().step() == 0);
  fs::remove(latest);
  again.trainer().resume();
  again.trainer().run();
  check_same_run(folder / "whole", folder / "a");
}

TEST_CASE("Trainer: a checkpoint of something else is an error, and changes nothing", "[trainer]") {
  const TemporaryFolder folder;
  Run(folder / "a").trainer().run();
  Run other(folder / "a", true);
  const std::vector<double> before = other.model.token_embedding.table.to_vector();
  CHECK_THROWS_WITH(other.trainer().resume(),
                    ContainsSubstring("is of another model, optimizer or average") &&
                        ContainsSubstring("unexpected: optimizer.token_embedding.table.m"));
  CHECK(other.model.token_embedding.table.to_vector() == before);

  // Text that is not a trainer's state, in a file that is otherwise right.
  const fs::path latest = *latest_checkpoint(folder / "a");
  const SafetensorsFile file = load_safetensors(latest);
  const std::string good = file.metadata.at("fovea.trainer");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1"), with("\"step\":13", "\"step\":-13"),
        with("\"step\":13", "\"step\":1e300"), with(R"("step":13)", R"("step":"13")"),
        with("\"version\":1", "\"version\":2"), std::string(100000, '[')}) {
    Metadata metadata = file.metadata;
    metadata["fovea.trainer"] = text;
    save_safetensors(latest, file.state, metadata);
    Run run(folder / "a");
    CHECK_THROWS_WITH(run.trainer().resume(), ContainsSubstring("does not say where its run was"));
  }
}

TEST_CASE("Trainer: logs that were changed since the checkpoint", "[trainer]") {
  const TemporaryFolder folder;
  Run(folder / "whole").trainer().run();
  Run first(folder / "a");
  first.die_at(8);
  CHECK_THROWS_AS(first.trainer().run(), Death);

  const fs::path log = folder / "a/log.jsonl";
  const std::string text = bytes_of(log);
  write(log, "short");
  Run again(folder / "a");
  again.trainer().resume();
  CHECK_THROWS_WITH(again.trainer().run(), ContainsSubstring("log.jsonl' has 5 bytes, and had") &&
                                               ContainsSubstring("remove it to begin it anew"));
  CHECK(bytes_of(log) == "short");
  write(log, text + "a line of another future\n");
  again.trainer().run();
  check_same_run(folder / "whole", folder / "a");
}

TEST_CASE("Trainer: a log that was removed is begun anew", "[trainer]") {
  const TemporaryFolder folder;
  Run(folder / "whole").trainer().run();
  Run first(folder / "a");
  first.die_at(8);
  CHECK_THROWS_AS(first.trainer().run(), Death);
  fs::remove(folder / "a/log.csv");
  Run again(folder / "a");
  again.trainer().resume();
  again.trainer().run();
  CHECK(bytes_of(folder / "a/log.jsonl") == bytes_of(folder / "whole/log.jsonl"));
  CHECK_THAT(bytes_of(folder / "a/log.csv"), Catch::Matchers::StartsWith("step,loss"));
  CHECK_THAT(bytes_of(folder / "a/log.csv"), ContainsSubstring("\n7,"));
}

// While one of these lives, files can't grow beyond a size, as on a full disk.
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

TEST_CASE("Trainer: a full disk ends the run, and its last checkpoint remains", "[trainer]") {
  const TemporaryFolder folder;
  Run(folder / "whole").trainer().run();
  const bool of_log = GENERATE(true, false);
  const auto size = fs::file_size(folder / "whole/log.jsonl");
  REQUIRE(size < fs::file_size(folder / "whole/checkpoints/step-00000013.safetensors"));

  Run run(folder / "a");
  std::unique_ptr<FileLimit> limit;
  run.trainer().on_step([&](const StepReport& report) {
    if (report.step == 7) limit = std::make_unique<FileLimit>(of_log ? 300 : size);
  });
  try {
    run.trainer().run();
    FAIL("it went on");
  } catch (const FileError& error) {
    limit.reset();
    CHECK_THAT(error.what(), ContainsSubstring((folder / "a").string()));
    CHECK_THAT(error.what(), ContainsSubstring(of_log ? "can't write" : "[save_safetensors] can't write"));
  }
  CHECK(latest_checkpoint(folder / "a") == folder / "a/checkpoints/step-00000006.safetensors");
  Run again(folder / "a");
  again.trainer().resume();
  again.trainer().run();
  check_same_run(folder / "whole", folder / "a");
}

}  // namespace
}  // namespace fovea
