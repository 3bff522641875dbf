#include "fovea/layers/layer_norm.h"

#include "fovea/autograd/ops.h"
#include "layers/init.h"

namespace fovea {

LayerNorm::LayerNorm(std::int64_t d_model, double eps_) : eps(eps_) {
  check_sizes("LayerNorm", {d_model});
  if (!(eps >= 0)) fail<ValueError>("[LayerNorm] eps is {}: it must be 0 or more", eps);
  gain = parameter(ones({d_model}));
  bias = parameter(zeros({d_model}));
}

Tensor LayerNorm::operator()(const Tensor& x) const { return layer_norm(x, gain, bias, eps); }

}  // namespace fovea
