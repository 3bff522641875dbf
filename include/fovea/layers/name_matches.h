#pragma once

#include <string_view>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// Whether a name matches a pattern: '*' matches any number of characters, dots included, and '?' exactly
/// one.
FOVEA_API bool name_matches(std::string_view pattern, std::string_view name);

}  // namespace fovea
