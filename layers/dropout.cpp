#include "fovea/layers/dropout.h"

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"

namespace fovea {

Dropout::Dropout(double p_) : p(p_) {
  if (!(p >= 0 && p <= 1)) {
    fail<ValueError>(
        "[Dropout] p is {}: it must be a probability, from 0 (keep everything) to 1 (drop everything)", p);
  }
}

Tensor Dropout::operator()(const Tensor& x) const { return dropout(x, p); }

}  // namespace fovea
