#include "cases/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fovea::cases {
namespace {

bool agree(double actual, double expected, double limit, Zeros zeros) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (expected == 0 && zeros == Zeros::exact) return actual == 0;
  return actual == expected || std::abs(actual - expected) <= limit;
}

// Says where the tensors differ, or is empty if they agree.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance, Zeros zeros) {
  if (actual.shape() != expected.shape()) {
    return fmt::format("shape {}, expected {}", to_string(actual.shape()), to_string(expected.shape()));
  }
  const std::vector<double> a = actual.to_vector(), e = expected.to_vector();
  double largest = 1;
  for (const double value : e) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  std::string text;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (agree(a[i], e[i], tolerance * largest, zeros)) continue;
    if (++wrong == 1) {
      text = fmt::format("element {} of {} is {:.17g}, expected {:.17g}", i, to_string(actual.shape()), a[i],
                         e[i]);
    }
  }
  if (wrong > 1) text += fmt::format(", and {} more differ", wrong - 1);
  return text;
}

}  // namespace

void Findings::fail_with(const std::string& text, const std::string& verdict) {
  if (report.passed()) report.verdict = verdict;
  report.failures.push_back(fmt::format("{}: {}", subject_, text));
}

void Findings::expect_equal(const std::string& what, const Tensor& actual, const Tensor& expected,
                            double tolerance, Zeros zeros) {
  const std::string found = difference(actual, expected, tolerance, zeros);
  if (found.empty()) return;
  fail_with(fmt::format("{} {}: {}", name_of(actual.dtype()), what, found),
            actual.dtype() == f32 ? "f32-drift" : "wrong");
}

}  // namespace fovea::cases
