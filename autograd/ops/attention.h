#pragma once

#include <cstdint>
#include <optional>

#include "autograd/kernels/attention.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops/attention.h"

// What fused attention (attention.cpp) and attention made of ops (attention_reference.cpp) share.
namespace fovea::detail {

/// Throws what `attention` throws for these inputs. v may be undefined where only weights are asked for.
kernels::AttentionSizes check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                        const AttentionOptions& options);

/// What the products of queries and keys are multiplied by.
double scale_of(const Tensor& q, const AttentionOptions& options);

/// Draws the key of this call's dropout mask; nothing if this call drops nothing.
std::optional<std::uint64_t> draw_dropout_key(const AttentionOptions& options);

/// The gradients of q, k, v, bias, relative_bias and sinks, in this order, made of ops: so they can be
/// differentiated again.
Gradients attention_gradients_in_ops(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const AttentionOptions& options,
                                     std::optional<std::uint64_t> dropout_key, const Tensor& dy,
                                     const NeedsGradient& needs);

}  // namespace fovea::detail
