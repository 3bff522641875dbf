#include "fovea/layers/rotary.h"

#include <cmath>

#include "layers/init.h"

namespace fovea {

Rotary::Rotary(std::int64_t d_, const RotaryOptions& options_) : d(d_), options(options_) {
  check_sizes("Rotary", {d});
  const std::int64_t r = options.dimensions.value_or(d);
  if (r < 0 || r > d || r % 2 != 0) {
    fail<ValueError>(
        "[Rotary] {} of {} channels can't be rotated in pairs: choose an even number from 0 to {}", r, d, d);
  }
  if (!(options.base > 0 && std::isfinite(options.base))) {
    fail<ValueError>("[Rotary] the base is {}: it must be above 0, for example 10000", options.base);
  }
  if (!(options.factor > 0 && std::isfinite(options.factor))) {
    fail<ValueError>("[Rotary] the scaling factor is {}: it must be above 0, for example 2", options.factor);
  }
}

Tensor Rotary::operator()(const Tensor& x, std::int64_t offset) const {
  if (x.rank() < 2 || x.size(-1) != d) {
    fail<ShapeError>("[Rotary] expects x (..., T, {}), and got {}", d, to_string(x.shape()));
  }
  RotaryOptions moved = options;
  moved.offset += offset;
  return rotary(x, moved);
}

}  // namespace fovea
