// What a run keeps in its folder, and what it makes of a folder that is damaged or hostile.

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/parallel.h"
#include "tests/train/loop/training_run.h"

namespace fovea {
namespace {

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

TEST_CASE("Run: no flipped bit of a checkpoint goes unnoticed", "[trainer]") {
  const TemporaryFolder folder;
  Training training;
  training.train_in(folder / "a");
  const std::string bytes = bytes_of(*latest_checkpoint(folder / "a"));
  Rng rng(17);
  for (int i = 0; i < 1500; ++i) {
    // Every third flip is in the header, which is shorter than the elements.
    const std::int64_t at = rng.uniform_int(i % 3 == 0 ? 1500 : static_cast<std::int64_t>(bytes.size()));
    std::string changed = bytes;
    changed[static_cast<std::size_t>(at)] ^= static_cast<char>(1 << rng.uniform_int(8));
    INFO("byte " << at);
    CHECK_THROWS_AS(load_safetensors(std::as_bytes(std::span(changed))), FileError);
  }
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
  CHECK_THROWS_AS(with({.metadata = {{"fovea.logs", "x"}}}), ValueError);
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
    check_metadata("fovea.logs", text, "does not say where the logs end");
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
