#include "autograd/ops/norm.h"
#include "autograd/ops/reference.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::Centered;

namespace {

detail::KernelRuns rms_norm_runs("rms_norm"), rms_norm_backward_runs("rms_norm_backward");

Tensor rstd_in_ops(const Tensor& x, double eps) { return rsqrt(mean(x * x, -1, keepdims) + eps); }

// The gradients in ops. The saved statistics are constants to the graph, so they are computed again from x.
Gradients rms_reference_gradients(const Tensor& x, const Tensor& gain, const Tensor& dy, double eps,
                                  const NeedsGradient& needs) {
  const Tensor rstd = rstd_in_ops(x, eps);
  const Tensor y = x * rstd;
  Gradients gradients(2, {});
  if (needs[0]) {
    const Tensor g = gain.defined() ? dy * gain : dy;
    gradients[0] = rstd * (g - y * mean(g * y, -1, keepdims));
  }
  if (needs[1]) gradients[1] = sum_to(dy * y, needs.shape(1));
  return gradients;
}

Gradients rms_fused_gradients(const Tensor& x, const Tensor& gain, const Tensor& statistics, const Tensor& dy,
                              const NeedsGradient& needs) {
  rms_norm_backward_runs.count();
  Gradients gradients(2, {});
  if (needs[0]) gradients[0] = detail::norm_dx<Centered::no>(x, gain, statistics, dy);
  if (needs[1]) gradients[1] = detail::norm_dgain(x, statistics, dy);
  return gradients;
}

void check(const Tensor& x, const Tensor& gain, double eps) {
  detail::check_norm_eps("rms_norm", eps);
  detail::check_norm_input("rms_norm", x);
  detail::check_norm_parameter("rms_norm", x, "gain", gain);
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  check(x, gain, eps);
  const Tensor statistics = empty({detail::Rows(x.shape()).count, 2}, f64);
  const Tensor y = detail::norm_value<Centered::no>(x, gain, {}, eps, statistics);
  rms_norm_runs.count();
  return record("rms_norm", y, {x, gain}, {x, gain, statistics},
                [eps](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  if (recording()) return rms_reference_gradients(saved[0], saved[1], dy, eps, needs);
                  return rms_fused_gradients(saved[0], saved[1], saved[2], dy, needs);
                });
}

Tensor reference::rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  check(x, gain, eps);
  const Tensor y = x * rstd_in_ops(x, eps);
  return gain.defined() ? y * gain : y;
}

}  // namespace fovea
