#include "fovea/train/loop/recent_losses.h"

#include <algorithm>
#include <cmath>

namespace fovea {

void RecentLosses::add(double loss) {
  ++count;
  const double weight = 1 / static_cast<double>(std::min(count, memory));
  const double difference = loss - mean;
  mean += weight * difference;
  variance = (1 - weight) * (variance + weight * difference * difference);
}

std::optional<double> RecentLosses::limit(double sigmas) const {
  if (count < memory) return std::nullopt;
  return mean + sigmas * std::sqrt(variance);
}

}  // namespace fovea
