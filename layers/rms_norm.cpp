#include "fovea/layers/rms_norm.h"

#include "fovea/autograd/ops.h"
#include "layers/init.h"

namespace fovea {

RmsNorm::RmsNorm(std::int64_t d_model, double eps_) : eps(eps_) {
  check_sizes("RmsNorm", {d_model});
  if (!(eps >= 0)) fail<ValueError>("[RmsNorm] eps is {}: it must be 0 or more", eps);
  gain = parameter(ones({d_model}));
}

Tensor RmsNorm::operator()(const Tensor& x) const { return rms_norm(x, gain, eps); }

}  // namespace fovea
