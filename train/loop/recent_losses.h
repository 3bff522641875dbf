#pragma once

#include <cstdint>
#include <optional>

namespace fovea::detail {

/// Mean and variance of the losses of recent steps, to tell an outlier: over all of the first `memory` steps,
/// then exponentially weighted with 1 / memory for the newest.
struct RecentLosses {
  static constexpr std::int64_t memory = 50;

  std::int64_t count = 0;
  double mean = 0;
  double variance = 0;

  void add(double loss);
  /// mean + factor deviations; nothing before `memory` losses are there.
  std::optional<double> limit(double factor) const;
};

}  // namespace fovea::detail
