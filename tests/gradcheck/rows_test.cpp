#include "tests/gradcheck/rows.h"

#include <algorithm>

#include "tests/support/catch.h"

// gradcheck finds every planted bug, and passes every correct function.

using namespace fovea;

namespace {

// Checks every row with a few seeds. The test check.gradcheck_seeds uses a thousand.
void check_rows(const std::vector<GradcheckRow>& rows, int order) {
  for (GradcheckRow row : rows) {
    row.options.order = std::max(order, row.options.order);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const GradcheckReport report = check(row, seed);
      INFO(row.name << ", order " << order << ", seed " << seed << ": " << report);
      CHECK(is_right(row, report));
    }
  }
}

}  // namespace

TEST_CASE("gradcheck finds every planted bug, and gives its hint") {
  CHECK(planted_bugs().size() >= 50);
  check_rows(planted_bugs(), 1);
}

TEST_CASE("gradcheck passes every correct function that is hard to check") {
  check_rows(hard_functions(), GENERATE(1, 2));
}

TEST_CASE("gradcheck passes second derivatives that are small beside the gradient") {
  // With these seeds the second derivatives are small beside the gradient of about 300, whose rounding must
  // be counted only once in their error.
  const std::vector<GradcheckRow> rows = hard_functions();
  GradcheckRow row =
      *std::ranges::find(rows, std::string("layer_norm of nearly constant rows"), &GradcheckRow::name);
  row.options.order = 2;
  for (const std::uint64_t seed : {717, 1075, 1216}) {
    const GradcheckReport report = check(row, seed);
    INFO(report);
    CHECK(report.passed());
  }
}

TEST_CASE("a checker with one fixed step passes simple functions and finds simple bugs") {
  for (const GradcheckRow& row : planted_bugs()) {
    if (row.name == "wrong sign" || row.name == "transposed") CHECK(fixed_step_outcome(row, 1) == "mismatch");
    if (row.name == "a sum of a softmax") CHECK(fixed_step_outcome(row, 1) == "pass");
  }
  for (const GradcheckRow& row : hard_functions()) {
    if (row.name == "relu at 1e-3") CHECK(fixed_step_outcome(row, 1) == "pass");
    if (row.name == "relu at 0") CHECK(fixed_step_outcome(row, 1) == "mismatch");
  }
}
