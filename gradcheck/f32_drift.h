#pragma once

#include "fovea/gradcheck/gradcheck.h"

namespace fovea::detail {

/// Compares what `make` sets up in f32 with the same numbers in f64, value and gradients, and adds the
/// elements that drift to the report. A result may be off by
///
///   roundings (2^-24 largest + s) + 8 2^-24 largest |w|,
///
/// where `largest` is that of its tensor in f64, and s how far its elements move at most when every number of
/// the inputs is moved by up to 2^-24 of itself, in a few random ways: no f32 code can do better than about
/// s. The last part, of gradients only, is for terms as large as the cotangent that cancel. A gradient that
/// is zero to within the rounding of f64 may be roundings 2^-24 sum |w f| / max(1, |x|).
void compare_f32(const MakeSubject& make, const GradcheckOptions& options, GradcheckReport& report);

}  // namespace fovea::detail
