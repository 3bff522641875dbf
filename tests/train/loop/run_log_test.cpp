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

TEST_CASE("RunLog: continues at the given sizes, and cuts no log if one of them is too short", "[trainer]") {
  const TemporaryFolder folder;
  RunLog::Sizes sizes;
  {
    RunLog log(folder.path(), {});
    log.step(report_of(1), 5);
    log.sync();
    sizes = log.sizes();
    CHECK(sizes.size() == 2);
    for (const auto& [name, size] : sizes) CHECK(std::filesystem::file_size(folder / name) == size);
    log.step(report_of(2), 10);
  }
  const std::string jsonl = text_of(folder / "log.jsonl"), events = text_of(folder / events_name);
  RunLog::Sizes wrong = sizes;
  wrong[events_name] = events.size() + 1;
  CHECK_THROWS_AS(RunLog(folder.path(), wrong), FileError);
  CHECK(text_of(folder / "log.jsonl") == jsonl);
  CHECK_THAT(jsonl, ContainsSubstring("{\"step\":2,"));
  {
    RunLog log(folder.path(), sizes);
    CHECK(log.sizes() == sizes);
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

TEST_CASE("RunLog: a folder in place of a log is an error with its path", "[trainer]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "log.jsonl");
  CHECK_THROWS_WITH(RunLog(folder.path(), {}), ContainsSubstring("log.jsonl"));
}

}  // namespace
}  // namespace fovea::detail
