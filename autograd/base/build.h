#pragma once

#include <string>

#include "fovea/autograd/base/export.h"

namespace fovea::detail {

/// Names the build of the library, such as "fovea 0.1.0, GCC 12.2.0, optimised, x86-64 AVX2 FMA, Eigen
/// 3.4.0". Results have the same bits in any number of threads and on any day, but only in one build: another
/// compiler or other instructions add in another order, or round a product or not.
FOVEA_API std::string build_identity();

}  // namespace fovea::detail
