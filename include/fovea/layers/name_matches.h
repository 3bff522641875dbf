#pragma once

#include <string_view>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// Whether a name fits a pattern, in which '*' stands for any characters, dots too, and '?' for one.
FOVEA_API bool name_matches(std::string_view pattern, std::string_view name);

}  // namespace fovea
