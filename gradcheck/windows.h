#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace fovea::detail {

/// A derivative: value +- error. The value is NaN where there is none.
struct Slope {
  double value = std::numeric_limits<double>::quiet_NaN();
  double error = std::numeric_limits<double>::infinity();
};

/// A sequence of windows from large steps to small ones. A window is an extrapolation to step 0 from three
/// difference quotients.
class Windows {
 public:
  /// Adds a window. Its error is its own uncertainty and its distance from the windows before it.
  void add(double value, double uncertainty, double step);
  /// Adds the rounding of the function to all errors, where it was found to be larger than was known.
  void add_noise(double noise);
  void clear() { *this = Windows(); }
  bool empty() const { return all_.empty(); }

  /// The window with the smallest error of those that every later window agrees with.
  Slope best_slope() const { return all_.empty() ? Slope() : all_[best()]; }
  double best_step() const { return all_.empty() ? 0 : steps_[best()]; }

 private:
  std::size_t best() const;

  std::vector<Slope> all_;
  std::vector<double> steps_, distances_;
};

}  // namespace fovea::detail
