#pragma once

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"
#include "fovea/autograd/ops/attention.h"

namespace fovea::detail {

/// One head of self-attention: projects x, calls attend(q, k, v) -> Attention with H = 1, and multiplies the
/// output by Wo. The result has the axes of x, and weights if `attend` returns any.
template <class Attend>
Attention self_attention(const char* name, const Tensor& x, const Tensor& Wq, const Tensor& Wk,
                         const Tensor& Wv, const Tensor& Wo, const Attend& attend) {
  if (x.rank() != 2 && x.rank() != 3) {
    fail<ShapeError>("[{}] expects x (B, T, C) or (T, C), and got {}", name, to_string(x.shape()));
  }
  const std::int64_t batch = x.rank() == 3 ? x.size(0) : 1, time = x.size(-2);
  const auto one_head = [&](const Tensor& W) { return reshape(linear(x, W), {batch, 1, time, W.size(1)}); };
  const auto axes_of_x = [&](const Tensor& of_head) {
    Shape shape = x.shape();
    shape.back() = of_head.size(-1);
    return reshape(of_head, shape);
  };
  const Attention head = attend(one_head(Wq), one_head(Wk), one_head(Wv));
  return {linear(axes_of_x(head.output), Wo), head.weights.defined() ? axes_of_x(head.weights) : Tensor()};
}

}  // namespace fovea::detail
