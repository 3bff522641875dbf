#pragma once

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/ops.h"

/// The plain formula of every op that has a kernel of its own, made of primitive ops: the oracle of its
/// tests, and what is differentiated when the gradient of its gradient is asked for.
namespace fovea::reference {

FOVEA_API Tensor softmax(const Tensor& x, Axis axis = -1);
FOVEA_API Tensor log_softmax(const Tensor& x, Axis axis = -1);
FOVEA_API Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep = false);
FOVEA_API CrossEntropy cross_entropy(const Tensor& logits, const Indices& targets,
                                     const CrossEntropyOptions& options = {});
FOVEA_API Tensor layer_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {},
                            double eps = 1e-5);
FOVEA_API Tensor rms_norm(const Tensor& x, const Tensor& gain = {}, double eps = 1e-5);
FOVEA_API Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const AttentionOptions& options = {});
FOVEA_API Tensor silu(const Tensor& x);
FOVEA_API Tensor gelu(const Tensor& x, const GeluOptions& options = {});

}  // namespace fovea::reference
