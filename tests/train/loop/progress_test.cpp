#include "fovea/train/loop/progress.h"

#include <algorithm>
#include <limits>
#include <regex>
#include <string>

#include "tests/support/catch.h"

namespace fovea {
namespace {

// What Progress prints to a file, which is not a terminal.
template <class Use>
std::string text_of(const Use& use) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    Progress progress(file);
    use(progress);
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  REQUIRE(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  return text;
}

StepReport report_of(std::int64_t step, std::int64_t steps) {
  return {.step = step,
          .steps = steps,
          .loss = static_cast<double>(step),
          .tokens = step % 2 + 1,
          .learning_rate = 0.001,
          .gradient_norm = 0.25};
}

TEST_CASE("Progress: prints ten lines where there is no terminal", "[trainer]") {
  const std::string text = text_of([](Progress& progress) {
    for (std::int64_t step = 1; step <= 1300; ++step) progress(report_of(step, 1300));
  });
  CHECK(std::ranges::count(text, '\n') == 10);
  // The loss is the mean over the tokens of steps 1 to 130, of which odd steps have 2 and even steps 1.
  const std::regex first(
      "step +130/1,300  loss 65\\.3333  rate 1\\.00e-03  norm 0\\.25 +[0-9,]+ tokens/s  [0-9.]+ s left\n");
  CHECK(std::regex_search(text, first));
  CHECK_THAT(text, ContainsSubstring("step 1,300/1,300"));
}

TEST_CASE("Progress: counts skipped steps, also in a resumed run", "[trainer]") {
  const std::string text = text_of([](Progress& progress) {
    for (std::int64_t step = 15; step <= 20; ++step) {
      StepReport report = report_of(step, 20);
      if (step == 19) {
        report.loss = std::numeric_limits<double>::quiet_NaN();
        report.skipped = "loss is not finite";
      }
      progress(report);
    }
  });
  CHECK(std::ranges::count(text, '\n') == 3);
  CHECK_THAT(text, ContainsSubstring("step 20/20  loss 20.0000") && ContainsSubstring("left  1 skipped\n"));
}

TEST_CASE("Progress: prints a line for each evaluation", "[trainer]") {
  const std::string text = text_of([](Progress& progress) {
    progress(EvaluationReport{.step = 1300, .loss = 1.25, .tokens = 7, .best = true});
    progress(EvaluationReport{.step = 1400, .loss = 1.5, .tokens = 7});
  });
  CHECK(text ==
        "validation loss 1.2500 at step 1,300, the best so far\nvalidation loss 1.5000 at step 1,400\n");
}

}  // namespace
}  // namespace fovea
