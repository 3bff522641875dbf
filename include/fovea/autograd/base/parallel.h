#pragma once

#include "fovea/autograd/base/export.h"

namespace fovea {

/// Sets how many threads ops may use; before the first call, as many as the machine has. Results do not
/// depend on it, because work is cut by its size and never by the number of threads.
/// Throws: ValueError if n < 1.
FOVEA_API void set_threads(int n);
FOVEA_API int threads();

}  // namespace fovea
