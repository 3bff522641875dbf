#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>

#include "tests/gradcheck/square.h"
#include "tests/support/catch.h"

// The report of gradcheck: as text, as JSON, and in a test framework.

using namespace fovea;

TEST_CASE("gradcheck's report lists the worst elements first, and counts those it leaves out") {
  const auto rule = [](const Tensor& x, const Tensor& dy) {
    return 2 * x * dy + to(arange(15, f64), x.dtype());
  };
  const GradcheckReport report = gradcheck([&](const Tensor& x) { return square_with_rule(x, rule); },
                                           random({15}), {.compare_f32 = false});
  REQUIRE(report.failures.size() == 14);
  for (std::size_t i = 1; i < 14; ++i) CHECK(report.failures[i - 1].relative >= report.failures[i].relative);
  const std::string text = to_string(report, 3);
  CHECK_THAT(text,
             ContainsSubstring(to_string(report.failures[2].index)) && ContainsSubstring("and 11 more"));
  CHECK(text.find(to_string(report.failures[0].index)) < text.find(to_string(report.failures[1].index)));
}

TEST_CASE("a failing CHECK of a gradcheck prints its table") {
  const GradcheckReport report = check_rule({3, 5}, [](auto x, auto dy) { return -2 * x * dy; });
  CHECK_FALSE(report);
  const std::string shown = Catch::Detail::stringify(report);
  CHECK(shown == to_string(report));
  CHECK_THAT(shown, ContainsSubstring("FAILED: 15 elements") && ContainsSubstring("wrong") &&
                        ContainsSubstring("hint: x, order 1: the sign is wrong"));
  CHECK(gradcheck([](const Tensor& x) { return x * x; }, random({3})));
}

TEST_CASE("gradcheck's report states its cost, and its JSON agrees with its text") {
  const GradcheckReport report = check_rule({3, 5}, [](auto x, auto dy) { return -2 * x * dy; });
  CHECK(report.evaluations > 15 * 6);
  CHECK(report.seconds > 0);
  CHECK_THAT(to_string(report), ContainsSubstring(fmt::format("{} evaluations in ", report.evaluations)) &&
                                    ContainsSubstring("limit 1e-06 (|numeric| + 0.1 L) + s"));
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  CHECK(json["passed"] == false);
  CHECK(json["elements"] == 15);
  CHECK(json["evaluations"] == report.evaluations);
  CHECK(json["failures"].size() == report.failures.size());
  CHECK(json["failures"][0]["verdict"] == "wrong");
  CHECK(json["failures"][0]["analytic"] == report.failures[0].analytic);
  CHECK(json["failures"][0]["index"].size() == 2);
  CHECK(json["tensors"][0]["hint"] == report.tensors[0].hint);
  const GradcheckReport bad =
      check_rule({3}, [](auto x, auto dy) { return 2 * x * dy * std::numeric_limits<double>::infinity(); });
  CHECK(nlohmann::json::parse(to_json(bad))["failures"][0]["relative"].is_string());
}
