#pragma once

#include <string>
#include <vector>

#include "fovea/gradcheck/gradcheck.h"

namespace fovea::detail {

/// Throws: ValueError for an option that is out of range or names no tensor.
void check_arguments(const std::vector<NamedTensor>& tensors, const GradcheckOptions& options);

/// Says which tensor has elements that share memory, so that none of them can be moved alone. Empty if none
/// has.
std::string first_overlap(const std::vector<NamedTensor>& tensors);

}  // namespace fovea::detail
