#pragma once

#include "fovea/autograd/base/export.h"

namespace fovea {

/// How many threads ops may use from now on; at first as many as the machine has. Results do not depend on
/// it: work is cut by its size, never by the number of threads. Throws: ValueError if n < 1.
FOVEA_API void set_threads(int n);
FOVEA_API int threads();

}  // namespace fovea
