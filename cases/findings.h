#pragma once

#include <string>
#include <vector>

#include "cases/cases.h"

// What the checks of one row find, collected into a CaseReport.
namespace fovea::cases {

/// Values in f64 differ from their oracle, and gradients from those of another path, by a few roundings of
/// intermediate results.
inline constexpr double f64_tolerance = 1e-12;
inline constexpr double f32_rounding = 0x1p-24;

/// Whether an expected zero must be met exactly, or within the tolerance like any other number.
enum class Zeros { near, exact };

class Findings {
 public:
  /// Runs one check, whose failures begin with the name of its subject. An exception is a failure too.
  template <class Check>
  void about(const std::string& subject, const Check& check) {
    subject_ = subject;
    try {
      check();
    } catch (const std::exception& e) {
      fail_with(std::string("it threw ") + e.what());
    }
  }

  void fail_with(const std::string& text, const std::string& verdict = "wrong");

  /// Fails where elements differ by more than tolerance * max(1, the largest finite |expected|).
  void expect_equal(const std::string& what, const Tensor& actual, const Tensor& expected, double tolerance,
                    Zeros zeros = Zeros::near);

  CaseReport report;

 private:
  std::string subject_;
};

}  // namespace fovea::cases
