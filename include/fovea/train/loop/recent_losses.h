#pragma once

#include <cstdint>
#include <optional>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// A running mean and variance of the losses of recent steps, by which an outlier is recognised. The first
/// `memory` losses count equally; from then on each new loss has the weight 1 / memory, and older ones fade
/// exponentially (Finch 2009, "Incremental calculation of weighted mean and variance").
struct FOVEA_API RecentLosses {
  static constexpr std::int64_t memory = 50;

  std::int64_t count = 0;
  double mean = 0;
  double variance = 0;

  void add(double loss);
  /// mean + sigmas * standard deviation; nothing before `memory` losses have been added.
  std::optional<double> limit(double sigmas) const;
};

}  // namespace fovea
