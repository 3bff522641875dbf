#pragma once

#include <span>
#include <string>

#include "fovea/autograd/graph/graph.h"

// The checks of an Anomaly scope.
namespace fovea::detail {

/// Describes the first element that is not finite, as "nan at (0, 3)"; empty if all are.
std::string find_nonfinite(const Tensor& x);

/// Checks the values that an op has computed from these inputs.
/// Throws: NonFiniteError for a NaN among the inputs, or a value that is not finite though the inputs are. A
/// value may be infinite where an input is.
void check_finite(const char* op, std::span<const Tensor> values, TensorRefs inputs);

}  // namespace fovea::detail
