#pragma once

#include "fovea/autograd/ops/attention.h"
#include "fovea/layers/tap.h"

namespace fovea {

/// Attention within a layer: by the fused kernel, which has no scores or weights to show, unless these are
/// tapped or the weights are asked for. Taps: "scores" and "weights" (B, H, Tq, Tk), the latter before
/// dropout.
template <class L>
Attention tapped_attention(const L* layer, const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionOptions& options, bool with_weights = false) {
  if (!with_weights && !hooked(layer, "scores") && !hooked(layer, "weights")) {
    return {attention(q, k, v, options), {}};
  }
  const Tensor scores = tap(layer, "scores", attention_scores(q, k, options));
  const Tensor weights = tap(layer, "weights", attention_softmax(scores, options.sinks));
  return {attention_output(weights, v, options), weights};
}

}  // namespace fovea
