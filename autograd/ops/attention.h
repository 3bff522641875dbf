#pragma once

#include <cstdint>
#include <optional>

#include "autograd/kernels/attention.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops/attention.h"

// What the fused op and the one made of ops share.
namespace fovea::detail {

/// Throws what is wrong with inputs and options. v may be undefined, where only weights are asked for.
kernels::AttentionSizes check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                        const AttentionOptions& options);

double scale_of(const Tensor& q, const AttentionOptions& options);

/// The key of this call's dropout; nothing, if nothing is dropped.
std::optional<std::uint64_t> draw_dropout_key(const AttentionOptions& options);

/// The gradient in ops, to be differentiated itself. In the order of the record's inputs: q, k, v, bias,
/// relative, sinks.
Gradients attention_gradients_in_ops(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const AttentionOptions& options,
                                     std::optional<std::uint64_t> dropout_key, const Tensor& dy,
                                     const NeedsGradient& needs);

}  // namespace fovea::detail
