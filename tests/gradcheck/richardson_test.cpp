#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/gradcheck/gradcheck.h"
#include "tests/support/catch.h"

// The numeric derivative: its error estimate, kinks, and functions that rounding hides.

using namespace fovea;

TEST_CASE("gradcheck converges on a function that turns within its first step") {
  // tanh(1e3 x) turns within 1e-3, and the first step is seven times that.
  const GradcheckReport report = gradcheck([](const Tensor& x) { return tanh(1000 * x); },
                                           tensor({0.0003, -0.0011, 0.0007}, f64), {.order = 2});
  INFO(to_string(report));
  CHECK(report.passed());
}

TEST_CASE("gradcheck reports a kink with both slopes, and fails it when asked to") {
  const Tensor x = tensor({0, 1}, f64);
  const GradcheckReport report = gradcheck(relu, {{"x", x}});
  INFO(to_string(report));
  CHECK(report.passed());
  REQUIRE(report.kinks.size() == 1);
  const ElementCheck& kink = report.kinks[0];
  CHECK(kink.verdict == Verdict::kink);
  CHECK(kink.index == Shape{0});
  CHECK(kink.analytic == 0);
  const double slope = std::max(std::abs(kink.left.value()), std::abs(kink.right.value()));
  CHECK(slope >= 0.5);  // of the cotangent
  CHECK(std::min(std::abs(*kink.left), std::abs(*kink.right)) == 0);
  CHECK_THAT(to_string(report), ContainsSubstring("1 at kinks") && ContainsSubstring("kink: slopes"));

  const GradcheckReport strict = gradcheck(relu, {{"x", x}}, {.kinks_fail = true});
  CHECK_FALSE(strict.passed());
  CHECK(strict.kinks.empty());
  CHECK(strict.failures.size() == 1);
  // A gradient that is neither one of the slopes nor between them is wrong.
  const auto too_steep = [](const Tensor& v) {
    return record("relu", relu(v).detach(), {v}, {v},
                  [](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
                    return {where(saved[0] > 0.0, dy, where(saved[0] == 0.0, 3 * dy, 0.0))};
                  });
  };
  CHECK(gradcheck(too_steep, {{"x", x}}).failures.at(0).verdict == Verdict::wrong);
}

TEST_CASE("gradcheck is inconclusive where rounding hides the derivative") {
  const GradcheckReport report =
      gradcheck([](const Tensor& x) { return 1e12 + x; }, tensor({0.5, 0.25}, f64), {.compare_f32 = false});
  INFO(to_string(report));
  CHECK_FALSE(report.passed());
  REQUIRE(report.failures.size() == 2);
  for (const ElementCheck& element : report.failures) {
    CHECK(element.verdict == Verdict::inconclusive);
    CHECK(element.error > 1e-6);
    CHECK(std::abs(element.difference()) <= element.error);  // the error estimate covers the difference
  }
}

TEST_CASE("gradcheck draws another cotangent where one hides the derivative") {
  // The second derivative of log_softmax has the sum of the cotangent as a factor, which is 1e-4 for seed
  // 2016.
  Rng rng(1);
  const Tensor x = randn({7}, rng, f64);
  const auto check = [&](std::uint64_t seed) {
    return gradcheck([](const Tensor& v) { return log_softmax(v); }, x,
                     {.order = 2, .seed = seed, .compare_f32 = false});
  };
  const GradcheckReport once = check(1), again = check(2016);
  INFO(to_string(again));
  CHECK(again.passed());
  CHECK(again.elements == once.elements);
  CHECK(again.evaluations > 1.5 * static_cast<double>(once.evaluations));
}

TEST_CASE("gradcheck's error estimate bounds its error") {
  Rng rng(9);
  for (int i = 0; i < 200; ++i) {
    const double at = 3 * rng.normal();
    const GradcheckReport report =
        gradcheck([](const Tensor& x) { return exp(tanh(3 * x)) * x; }, tensor({at}, f64),
                  {.seed = static_cast<std::uint64_t>(i), .expect_zero = {"x"}});
    INFO(to_string(report));
    CHECK(report.passed());
    const ElementCheck& element = report.tensors[0].worst;
    CHECK(std::abs(element.difference()) <= element.error);
  }
}
