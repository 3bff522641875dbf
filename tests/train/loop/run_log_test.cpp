#include "train/loop/run_log.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <limits>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea::detail {
namespace {

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
          .skipped = skipped};
}

TEST_CASE("RunLog: steps and evaluations, without times", "[trainer]") {
  const TemporaryFolder folder;
  {
    RunLog log(folder.path(), {});
    log.step(report_of(1), 5, 0.5, 0.25);
    log.evaluation({.step = 1, .loss = 1.5, .tokens = 7, .best = true});
    log.step(report_of(2, "gradient of \"W\", b\xff is not finite"), 5, 0.75, 0.25);
  }
  CHECK(text_of(folder / "log.jsonl") ==
        "{\"step\":1,\"loss\":0.3333333333333333,\"learning_rate\":0.1,\"gradient_norm\":2.0,\"tokens\":5}\n"
        "{\"step\":1,\"validation_loss\":1.5,\"validation_tokens\":7,\"best\":true}\n"
        "{\"step\":2,\"loss\":null,\"learning_rate\":0.1,\"gradient_norm\":2.0,\"tokens\":5,"
        "\"skipped\":\"gradient of \\\"W\\\", b\xef\xbf\xbd is not finite\"}\n");
  CHECK(text_of(folder / "log.csv") ==
        "step,loss,learning_rate,gradient_norm,tokens,validation_loss,skipped\n"
        "1,0.3333333333333333,0.1,2,5,,\n"
        "1,,,,,1.5,\n"
        "2,nan,0.1,2,5,,\"gradient of \"\"W\"\", b\xff is not finite\"\n");
  CHECK(text_of(folder / "times.csv") ==
        "step,seconds,tokens_per_second\n"
        "1,         0.500,          20.0\n"
        "2,         0.750,          20.0\n");
  CHECK(RunLog::exists(folder.path()));
}

TEST_CASE("RunLog: goes on from where it was, and nothing is cut if one can't", "[trainer]") {
  const TemporaryFolder folder;
  RunLog::Sizes sizes;
  {
    RunLog log(folder.path(), {});
    log.step(report_of(1), 5, 0.5, 0.25);
    log.sync();
    sizes = log.sizes();
    CHECK(sizes.size() == 4);
    for (const auto& [name, size] : sizes) CHECK(std::filesystem::file_size(folder / name) == size);
    log.step(report_of(2), 10, 0.5, 0.25);
  }
  const std::string events = text_of(folder / "events.out.tfevents.fovea");
  RunLog::Sizes wrong = sizes;
  wrong["events.out.tfevents.fovea"] = events.size() + 1;
  CHECK_THROWS_AS(RunLog(folder.path(), wrong), FileError);
  CHECK_THAT(text_of(folder / "log.csv"), ContainsSubstring("\n2,"));
  {
    RunLog log(folder.path(), sizes);
    CHECK(log.sizes() == sizes);
    log.step(report_of(3), 15, 0.5, 0.25);
  }
  CHECK(text_of(folder / "times.csv") ==
        "step,seconds,tokens_per_second\n"
        "1,         0.500,          20.0\n"
        "3,         0.500,          20.0\n");
  CHECK(text_of(folder / "events.out.tfevents.fovea").size() == events.size());
}

TEST_CASE("RunLog: a folder in place of a log", "[trainer]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "log.csv");
  CHECK_THROWS_WITH(RunLog(folder.path(), {}), ContainsSubstring("log.csv"));
}

}  // namespace
}  // namespace fovea::detail
