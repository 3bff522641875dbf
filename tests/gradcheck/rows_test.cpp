#include "tests/gradcheck/rows.h"

#include <algorithm>

#include "tests/support/catch.h"

// The checker is checked: every planted bug is caught, and no correct function is accused.

using namespace fovea;

namespace {

// Every row, for a few seeds: check.gradcheck_seeds goes through a thousand.
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

TEST_CASE("gradcheck catches every planted bug, with its hint") {
  CHECK(planted_bugs().size() >= 50);
  check_rows(planted_bugs(), 1);
}

TEST_CASE("gradcheck does not cry wolf over hard functions") { check_rows(hard_functions(), GENERATE(1, 2)); }

TEST_CASE("gradcheck counts the rounding of a gradient once in the error of second derivatives") {
  // Draws for which the second derivatives are small beside the gradient, which is about 300.
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

TEST_CASE("a checker with one fixed step passes plain functions and finds plain bugs") {
  for (const GradcheckRow& row : planted_bugs()) {
    if (row.name == "sign" || row.name == "transposed") CHECK(fixed_step_outcome(row, 1) == "mismatch");
    if (row.name == "a sum of a softmax") CHECK(fixed_step_outcome(row, 1) == "pass");
  }
  for (const GradcheckRow& row : hard_functions()) {
    if (row.name == "relu at 1e-3") CHECK(fixed_step_outcome(row, 1) == "pass");
    if (row.name == "relu at 0") CHECK(fixed_step_outcome(row, 1) == "mismatch");
  }
}
