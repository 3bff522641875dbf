#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/gradcheck/gradcheck.h"

// Functions with known faults, and correct ones that are hard to check: what the checker itself is checked
// with.
namespace fovea {

struct GradcheckRow {
  std::string name;
  NamedFunction f;
  std::function<Inputs(Rng&)> inputs;
  GradcheckOptions options = {};  // all but the seed
  std::string expected = {};      // of a planted bug: the verdict that must be among those of the report
  std::string hint = {};          // and a piece of the hint, where there is one
};

/// Functions whose gradients are wrong on purpose.
std::vector<GradcheckRow> planted_bugs();
/// Correct functions at places where finite differences go wrong.
std::vector<GradcheckRow> hard_functions();

/// Whether the report has the row's expected outcome and hint; or, of a correct function, passes.
bool is_right(const GradcheckRow& row, const GradcheckReport& report);

GradcheckReport check(const GradcheckRow& row, std::uint64_t seed);

/// What a checker with one fixed step says: "pass" or "mismatch", or "error" where the function can't be run.
///
/// Central differences with step 1e-6 in the inputs' own dtype, every element of the Jacobian, and
/// |a - n| <= 1e-5 + 1e-3 |n|; at order 2 the same for the gradient as a function of the inputs.
std::string fixed_step_outcome(const GradcheckRow& row, std::uint64_t seed);

/// Both tables, as they stand in docs/gradcheck.md.
std::string planted_bugs_table();
std::string hard_functions_table();

}  // namespace fovea
