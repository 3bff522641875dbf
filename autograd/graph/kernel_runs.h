#pragma once

#include <cstdint>

#include "fovea/autograd/base/export.h"

namespace fovea {

/// The fused kernels whose use is counted, so that a test can tell which path ran.
enum class Kernel {
  softmax,
  softmax_backward,
  log_softmax,
  log_softmax_backward,
  cross_entropy,
  cross_entropy_backward,
  layer_norm,
  layer_norm_backward,
  rms_norm,
  rms_norm_backward,
  attention,
  attention_backward,
};

/// How often a kernel has run since the program started, over all threads.
FOVEA_API std::int64_t runs_of(Kernel kernel);

namespace detail {
void count_run(Kernel kernel);
}

}  // namespace fovea
