#include "autograd/ops/reference.h"
#include "tests/gradcheck/square.h"
#include "tests/support/catch.h"

using namespace fovea;

TEST_CASE("compare_functions finds where a fused kernel and its formula differ") {
  const Inputs inputs{{"x", random({3, 5})}};
  const NamedFunction fused = [](const Inputs& in) { return softmax(in["x"]); };
  const NamedFunction formula = [](const Inputs& in) { return reference::softmax(in["x"]); };
  const GradcheckReport report = compare_functions(fused, formula, inputs, {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
  CHECK(report.elements == 15 + 15 + 15);
  const NamedFunction off = [](const Inputs& in) { return reference::softmax(in["x"]) * (1 + 1e-9); };
  const GradcheckReport found = compare_functions(fused, off, inputs);
  CHECK_FALSE(found.passed());
  CHECK(found.failures.size() == 30);
  CHECK_THAT(to_string(found), ContainsSubstring("output") && ContainsSubstring("x"));
}
