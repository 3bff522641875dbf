#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/gradcheck/gradcheck.h"

// Functions with known bugs, and correct functions that are hard to check: the rows that gradcheck is tested
// with.
namespace fovea {

struct GradcheckRow {
  std::string name;
  NamedFunction f;
  std::function<Inputs(Rng&)> inputs;
  GradcheckOptions options = {};  // except the seed
  std::string expected = {};      // the verdict for a planted bug; empty for a correct function
  std::string hint = {};          // what the hint for a planted bug must contain
};

/// Functions whose gradients are wrong on purpose.
std::vector<GradcheckRow> planted_bugs();
/// Correct functions at points where finite differences are difficult.
std::vector<GradcheckRow> hard_functions();

/// Whether the report has the verdict and hint of a planted bug, or passes a correct function.
bool is_right(const GradcheckRow& row, const GradcheckReport& report);

GradcheckReport check(const GradcheckRow& row, std::uint64_t seed);

/// The result of a checker with one fixed step: "pass", "mismatch", or "error" if the function throws.
///
/// It takes central differences with a step of 1e-6, in the dtype of the inputs, for every element of the
/// Jacobian, and accepts |a - n| <= 1e-5 + 1e-3 |n|. At order 2 it does the same for the gradient, as a
/// function of the inputs.
std::string fixed_step_outcome(const GradcheckRow& row, std::uint64_t seed);

/// The two tables of docs/gradcheck.md.
std::string planted_bugs_table();
std::string hard_functions_table();

}  // namespace fovea
