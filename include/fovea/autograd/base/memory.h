#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// Bytes of tensors and graph nodes, over all threads.
struct MemoryUse {
  std::int64_t live_bytes;    ///< in use now
  std::int64_t peak_bytes;    ///< the most in use at once since the start or `reset_peak_memory`
  std::int64_t cached_bytes;  ///< freed by tensors, and kept to be reused
};

FOVEA_API MemoryUse memory();
FOVEA_API void reset_peak_memory();

/// Returns cached arrays to the system. Small blocks (1 KiB or less: nodes, handles) stay cached.
FOVEA_API void release_cached_memory();

}  // namespace fovea
