#include "autograd/ops/norm.h"
#include "autograd/ops/reference.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::Centered;

namespace {

detail::KernelRuns layer_norm_runs("layer_norm"), layer_norm_backward_runs("layer_norm_backward");

struct Normalized {
  Tensor value;
  Tensor rstd;
};

// Rows are centered twice: the first mean is rounded, and the second removes what the rounding has left.
Normalized normalized_in_ops(const Tensor& x, double eps) {
  const Tensor once = x - mean(x, -1, keepdims);
  const Tensor centered = once - mean(once, -1, keepdims);
  const Tensor rstd = rsqrt(mean(centered * centered, -1, keepdims) + eps);
  return {centered * rstd, rstd};
}

// The gradients in ops. The saved statistics are constants to the graph, so they are computed again from x.
Gradients reference_gradients(const Tensor& x, const Tensor& gain, const Tensor& dy, double eps,
                              const NeedsGradient& needs) {
  const auto [y, rstd] = normalized_in_ops(x, eps);
  Gradients gradients(3, {});
  if (needs[0]) {
    const Tensor g = gain.defined() ? dy * gain : dy;
    gradients[0] = rstd * (g - mean(g, -1, keepdims) - y * mean(g * y, -1, keepdims));
  }
  if (needs[1]) gradients[1] = sum_to(dy * y, needs.shape(1));
  if (needs[2]) gradients[2] = sum_to(dy, needs.shape(2));
  return gradients;
}

Gradients fused_gradients(const Tensor& x, const Tensor& gain, const Tensor& statistics, const Tensor& dy,
                          const NeedsGradient& needs) {
  layer_norm_backward_runs.count();
  Gradients gradients(3, {});
  if (needs[0]) gradients[0] = detail::norm_dx<Centered::yes>(x, gain, statistics, dy);
  if (needs[1]) gradients[1] = detail::norm_dgain(x, statistics, dy);
  if (needs[2]) gradients[2] = sum_to(dy, needs.shape(2));
  return gradients;
}

void check(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  detail::check_norm_eps("layer_norm", eps);
  detail::check_norm_input("layer_norm", x);
  detail::check_norm_parameter("layer_norm", x, "gain", gain);
  detail::check_norm_parameter("layer_norm", x, "bias", bias);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  check(x, gain, bias, eps);
  const Tensor statistics = empty({detail::Rows(x.shape()).count, 2}, f64);
  const Tensor y = detail::norm_value<Centered::yes>(x, gain, bias, eps, statistics);
  layer_norm_runs.count();
  return record("layer_norm", y, {x, gain, bias}, {x, gain, statistics},
                [eps](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  if (recording()) return reference_gradients(saved[0], saved[1], dy, eps, needs);
                  return fused_gradients(saved[0], saved[1], saved[2], dy, needs);
                });
}

Tensor reference::layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  check(x, gain, bias, eps);
  Tensor y = normalized_in_ops(x, eps).value;
  if (gain.defined()) y = y * gain;
  return bias.defined() ? y + bias : y;
}

}  // namespace fovea
