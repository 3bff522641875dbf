#include "gradcheck/windows.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "gradcheck/constants.h"

namespace fovea::detail {
namespace {

bool agree(const Slope& a, const Slope& b) {
  return std::abs(a.value - b.value) <= constants::agreement * (a.error + b.error);
}

}  // namespace

void Windows::add(double value, double uncertainty, double step) {
  if (!all_.empty()) {
    distances_.push_back(std::abs(value - all_.back().value));
    const auto recent = std::min<std::ptrdiff_t>(constants::recent_windows, std::ssize(distances_));
    uncertainty += *std::max_element(distances_.end() - recent, distances_.end());
  }
  all_.push_back({value, uncertainty});
  steps_.push_back(step);
}

void Windows::add_noise(double noise) {
  for (std::size_t i = 0; i < all_.size(); ++i)
    all_[i].error += constants::noise_amplification * noise / steps_[i];
}

std::size_t Windows::best() const {
  std::size_t best = all_.size() - 1;
  for (std::size_t i = all_.size() - 1; i-- > 0;) {
    const auto later = std::span(all_).subspan(i + 1);
    const bool confirmed = std::ranges::all_of(later, [&](const Slope& l) { return agree(l, all_[i]); });
    if (confirmed && all_[i].error < all_[best].error) best = i;
  }
  return best;
}

}  // namespace fovea::detail
