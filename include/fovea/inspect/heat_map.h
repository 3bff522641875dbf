#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// What a terminal can show; which of them is the caller's to find out.
enum class Colours {
  none,     ///< shades are the characters " ░▒▓█": under 1%, then up to 25, 50, 75 and 100%
  palette,  ///< backgrounds from the 256 colours of xterm
  rgb,      ///< backgrounds in 24 bits
};

struct HeatMapOptions {
  Colours colours = Colours::none;
  std::int64_t width = 80;  ///< columns of the terminal; a longer sentence goes on below
};

/// A sentence, each word shaded by its weight and with the weight in percent below: what one query attends
/// to.
///
/// The text ends each line with a newline, and leaves no colour switched on.
/// Shapes: weights (T,), one per word.
/// Throws: ShapeError if there are not as many weights as words; ValueError for one outside [0, 1] by more
/// than rounding, or NaN.
FOVEA_API std::string heat_map(std::span<const std::string> words, const Tensor& weights,
                               const HeatMapOptions& options = {});

/// A whole attention map: a line for each query, a cell for each key, both numbered from 0.
///
/// Shapes: weights (Tq, Tk), one row per query and one column per key. Throws: as above.
FOVEA_API std::string heat_map(std::span<const std::string> queries, std::span<const std::string> keys,
                               const Tensor& weights, const HeatMapOptions& options = {});

}  // namespace fovea
