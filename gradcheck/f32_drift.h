#pragma once

#include "fovea/gradcheck/gradcheck.h"

namespace fovea::detail {

/// Compares the value and gradients of what `make` sets up in f32 with those of the same numbers in f64, and
/// adds the elements that drift to the report. An element may be off by
///
///   roundings (2^-24 L + s) + 8 2^-24 max |w|,
///
/// where L is the largest element of its tensor in f64, and s how far the elements of that tensor move at
/// most when every input is moved by up to 2^-24 of itself, in a few random ways. No computation in f32 can
/// do much better than s. The last term, which gradients have, is for terms as large as the cotangent w that
/// cancel. A gradient that is zero to within the rounding of f64 may be off by roundings 2^-24 sum |w f| /
/// max(1, |x|).
void compare_f32(const MakeSubject& make, const GradcheckOptions& options, GradcheckReport& report);

}  // namespace fovea::detail
