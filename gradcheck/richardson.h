#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gradcheck/windows.h"

// The numeric derivative of a function along a line, with an estimate of its error.
namespace fovea::detail {

/// All outputs of the function at one point of the line.
struct Sample {
  double t = 0;  // the exact place, as floating point may not hold the one that was asked for
  std::vector<double> values;
  bool finite = false;
};

/// A function along a line: gives its sample at about t, where t = 0 is the point of interest.
using DirectionalFunction = std::function<Sample(double t)>;

/// What finite differences say about a function at one point.
struct Differences {
  Slope central;
  Slope left, right;     // from points on that side of the point of interest only
  bool jumps = false;    // whether the function itself differs between the two sides
  bool finite = true;    // whether the function is finite at the point itself
  double step = 0;       // the step that `central` was taken with
  double magnitude = 0;  // sum |w f|, the largest seen
  double terms = 0;      // about sum |w df/dt|, the terms whose sum is `central`
  double noise = 0;      // the rounding of w . f, where f is nothing else and its values do not explain it
  std::int64_t evaluations = 0;
  // The derivative of every output by itself, at `step`. Hints are made from it.
  std::vector<double> by_output = {};

  /// What the rounding of f makes of a derivative that is 0, with respect to a number at `position`.
  double rounding_of_zero(double position) const;
  /// The derivative: the central one, or a one-sided one where the other side is outside the domain.
  Slope best() const;
  /// Whether the two sides differ, by slope or by a jump, and `analytic` is one of the slopes or between
  /// them.
  bool is_kink(double analytic, double limit) const;
};

/// What determines the steps, and when the search may end.
struct Search {
  double position = 0;  // of the moved number, which sets the largest and the smallest step
  double scale = 1;     // of the numbers around it, used where the position is 0
  double analytic = 0;  // what the difference is expected to be
  double limit = 0;     // how far it may be from the expected value
};

/// Differentiates w . f along the line with shrinking steps: h = max(1, |x|) / 128, h / 2, h / 4 ...
///
/// Three central differences make a window, whose Richardson extrapolation removes the h^2 and h^4 terms of
/// the error. The error of a window is its distance from its own lower order and from the windows before it,
/// plus the rounding of f. A window counts only if all windows at smaller steps agree with it within their
/// errors. So a smooth convergence to a wrong value is refuted, as where a kink lies between the steps or the
/// function oscillates faster than they do. The search ends early only where a window confirms the expected
/// value, which was computed in another way.
///
/// centre: the outputs at the point of interest, which many lines share.
/// noise: how far rounding may put each output off, beside epsilon of itself. It matters where f is what
/// rounding leaves of terms that cancel.
Differences differentiate(const DirectionalFunction& f, std::span<const double> centre,
                          std::span<const double> w, std::span<const double> noise, const Search& search);

}  // namespace fovea::detail
