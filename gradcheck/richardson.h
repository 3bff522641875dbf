#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

// The numeric derivative of a function along a line, with an estimate of its error.
namespace fovea::detail {

/// A derivative: value +- error. NaN where there is none.
struct Slope {
  double value = std::numeric_limits<double>::quiet_NaN();
  double error = std::numeric_limits<double>::infinity();
};

/// All outputs of the function at one point of the line.
struct Sample {
  double t = 0;  // where exactly: floating point may not hold the place that was asked for
  std::vector<double> values;
  bool finite = false;
};

/// The function along the line: the sample at about t, where 0 is the point of interest.
using DirectionalFunction = std::function<Sample(double t)>;

/// What finite differences say about a function at one point.
struct Differences {
  Slope central;
  Slope left, right;     // from points strictly on that side
  bool jumps = false;    // the function itself differs between the two sides
  bool finite = true;    // at the point itself
  double step = 0;       // that `central` was taken with
  double magnitude = 0;  // sum |w f|, the largest seen
  double terms = 0;      // sum |w df/dt|, about: what `central` is the sum of
  double noise = 0;      // of w . f, where it is nothing but rounding, and more than its values explain
  std::int64_t evaluations = 0;
  // The derivative of every output by itself, at `step`: what hints are made from.
  std::vector<double> by_output = {};

  /// What rounding of f makes of a derivative that is 0, with respect to a number at `position`.
  double rounding_of_zero(double position) const;
  /// The derivative: central, or that of the one side where the other is not in the domain.
  Slope best() const;
  /// The two sides differ, by their slopes or by a jump, and `analytic` is one of the slopes or between them.
  bool is_kink(double analytic, double limit) const;
};

/// How the steps are chosen, and when to stop.
struct Search {
  double position = 0;  // of the moved number, which sets its largest and smallest step
  double scale = 1;     // of the numbers around it, where it is 0
  double analytic = 0;  // what the difference is expected to be
  double limit = 0;     // how far it may be from it
};

/// Differentiates w . f along the line, for shrinking steps: h = max(1, |x|) / 128, h / 2, h / 4 ...
///
/// Three central differences make a window, whose Richardson extrapolation removes the h^2 and h^4 terms of
/// the error. A window's error is its distance from its own lower order and from the window before, plus the
/// rounding of f. It counts only if all windows at smaller steps agree with it within their errors: a smooth
/// convergence to something else (a kink between the steps, an oscillation faster than they are) is refuted
/// there. The search ends early only where it meets the expected value: two ways to one number.
///
/// centre: the outputs at the point of interest, which many lines share.
/// noise: of each output, how far rounding may put it off, beside epsilon of itself. It counts where f is
/// left with the rounding of terms that cancel.
Differences differentiate(const DirectionalFunction& f, std::span<const double> centre,
                          std::span<const double> w, std::span<const double> noise, const Search& search);

}  // namespace fovea::detail
