#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"

namespace fovea {

/// The colours that a terminal can show. The caller finds out which.
enum class Colours {
  none,     ///< weights are the characters " ░▒▓█": below 1%, then up to 25, 50, 75 and 100%
  palette,  ///< backgrounds from the 256 colours of xterm
  rgb,      ///< backgrounds in 24 bits
};

struct HeatMapOptions {
  Colours colours = Colours::none;
  std::int64_t width = 80;  ///< the columns of the terminal; a longer sentence takes several lines
};

/// Draws what one query attends to: a sentence in which each word is shaded by its weight, with the weight in
/// percent below.
///
/// Every line of the text ends with a newline, and no colour stays switched on.
/// Shapes: weights (T,), one per word.
/// Throws: ShapeError if there are not as many weights as words; ValueError if a weight is NaN, or outside
/// [0, 1] by more than rounding.
FOVEA_API std::string heat_map(std::span<const std::string> words, const Tensor& weights,
                               const HeatMapOptions& options = {});

/// Draws a whole attention map: a line for each query and in it a cell for each key, both numbered from 0.
///
/// Shapes: weights (Tq, Tk). Throws: as above.
FOVEA_API std::string heat_map(std::span<const std::string> queries, std::span<const std::string> keys,
                               const Tensor& weights, const HeatMapOptions& options = {});

}  // namespace fovea
