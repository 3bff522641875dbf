#include "train/loop/run_log.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea::detail {
namespace {

constexpr const char* events_name = "events.out.tfevents.fovea";

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

StepReport report_of(std::int64_t step, const std::string& skipped = {}) {
  return {.step = step,
          .steps = 9,
          .loss = skipped.empty() ? 1.0 / 3 : std::numeric_limits<double>::quiet_NaN(),
          .tokens = 5,
          .learning_rate = 0.1,
          .gradient_norm = 2,
          .seconds = 0.25,
          .skipped = skipped};
}

TEST_CASE("RunLog: log.jsonl has steps and evaluations, without times", "[trainer]") {
  const TemporaryFolder folder;
  {
    RunLog log(folder.path(), {});
    log.step(report_of(1), 5);
    log.evaluation({.step = 1, .loss = 1.5, .tokens = 7, .best = true});
    log.step(report_of(2, "gradient of \"W\", b\xff is not finite"), 5);
  }
  CHECK(text_of(folder / "log.jsonl") ==
        "{\"step\":1,\"loss\":0.3333333333333333,\"learning_rate\":0.1,\"gradient_norm\":2.0,\"tokens\":5}\n"
        "{\"step\":1,\"validation_loss\":1.5,\"validation_tokens\":7,\"best\":true}\n"
        "{\"step\":2,\"loss\":null,\"learning_rate\":0.1,\"gradient_norm\":2.0,\"tokens\":5,"
        "\"skipped\":\"gradient of \\\"W\\\", b\xef\xbf\xbd is not finite\"}\n");
  CHECK(RunLog::exists(folder.path()));
}

TEST_CASE("RunLog: continues at the given ends, and cuts no log if one of them is too short", "[trainer]") {
  const TemporaryFolder folder;
  RunLog::Ends ends;
  {
    RunLog log(folder.path(), {});
    log.step(report_of(1), 5);
    log.sync();
    ends = log.ends();
    CHECK(ends.size() == 2);
    for (const auto& [name, end] : ends) CHECK(std::filesystem::file_size(folder / name) == end.size);
    log.step(report_of(2), 10);
  }
  const std::string jsonl = text_of(folder / "log.jsonl"), events = text_of(folder / events_name);
  RunLog::Ends wrong = ends;
  wrong[events_name].size = events.size() + 1;
  CHECK_THROWS_AS(RunLog(folder.path(), wrong), FileError);
  CHECK(text_of(folder / "log.jsonl") == jsonl);
  CHECK_THAT(jsonl, ContainsSubstring("{\"step\":2,"));
  {
    RunLog log(folder.path(), ends);
    CHECK(log.ends().at("log.jsonl").crc32 == ends.at("log.jsonl").crc32);
    log.step(report_of(3), 15);
  }
  const auto line = [](int step, int tokens) {
    return fmt::format(
        "{{\"step\":{},\"loss\":0.3333333333333333,\"learning_rate\":0.1,\"gradient_norm\":2.0,"
        "\"tokens\":{}}}\n",
        step, tokens);
  };
  CHECK(text_of(folder / "log.jsonl") == line(1, 5) + line(3, 15));
  CHECK(text_of(folder / events_name).size() == events.size());
}

TEST_CASE("RunLog: a log with other bytes of the right length is refused, and none is cut", "[trainer]") {
  const TemporaryFolder folder;
  RunLog::Ends ends;
  {
    RunLog log(folder.path(), {});
    for (const int step : {1, 2, 3}) log.step(report_of(step), 5 * step);
    ends = log.ends();
    log.step(report_of(4), 20);
  }
  for (const char* name : {"log.jsonl", events_name}) {
    const std::string bytes = text_of(folder / name);
    for (std::size_t i = 0; i < ends.at(name).size; i += 11) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 4);
      std::ofstream(folder / name, std::ios::binary) << changed;
      INFO(name << ", byte " << i);
      CHECK_THROWS_WITH(RunLog(folder.path(), ends),
                        ContainsSubstring("does not have the bytes that it had"));
      CHECK(text_of(folder / name) == changed);
    }
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
  const RunLog log(folder.path(), ends);
  CHECK(std::filesystem::file_size(folder / "log.jsonl") == ends.at("log.jsonl").size);
}

TEST_CASE("RunLog: a folder in place of a log is an error with its path", "[trainer]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "log.jsonl");
  CHECK_THROWS_WITH(RunLog(folder.path(), {}), ContainsSubstring("log.jsonl"));
}

}  // namespace
}  // namespace fovea::detail
