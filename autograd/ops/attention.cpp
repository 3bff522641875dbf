#include "autograd/ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "autograd/base/fail.h"
#include "autograd/graph/kernel_runs.h"
#include "autograd/graph/thread_modes.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"

namespace fovea {
namespace {

using kernels::AttentionSizes;

std::string shapes_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  return fmt::format("q {}, k {}, v {}", to_string(q.shape()), to_string(k.shape()),
                     v.defined() ? to_string(v.shape()) : "none");
}

void check_tensors(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool values = v.defined();
  detail::check_same_dtype("attention", q, k);
  if (values) detail::check_same_dtype("attention", q, v);
  if (q.rank() != 4 || k.rank() != 4 || (values && v.rank() != 4)) {
    fail<ShapeError>(
        "[attention] expects q (B, H, Tq, D), k (B, Hk, Tk, D), v (B, Hk, Tk, Dv), and got {}: reshape a "
        "tensor "
        "without an axis of heads to have H = 1",
        shapes_of(q, k, v));
  }
  const auto refuse = [&](const char* what) {
    fail<ShapeError>("[attention] {}: {}", what, shapes_of(q, k, v));
  };
  if (k.size(0) != q.size(0) || (values && v.size(0) != q.size(0))) refuse("the batch sizes differ");
  if (k.size(3) != q.size(3)) refuse("queries and keys have different head sizes");
  if (values && v.size(2) != k.size(2)) refuse("there must be one value for each key");
  if (values && v.size(1) != k.size(1)) refuse("keys and values have different numbers of heads");
  if (k.size(1) != q.size(1) && (k.size(1) == 0 || q.size(1) % k.size(1) != 0)) {
    refuse("the number of key heads does not divide the number of query heads");
  }
}

void check_numbers(const AttentionOptions& options) {
  detail::check_dropout("attention", options.dropout);
  if (!(options.softcap >= 0) || std::isinf(options.softcap)) {
    fail<ValueError>("[attention] softcap {}: it must be a positive number, or 0 for no softcap",
                     options.softcap);
  }
  if (options.scale && !std::isfinite(*options.scale)) {
    fail<ValueError>("[attention] scale {}: it must be finite", *options.scale);
  }
}

void check_biases(const Tensor& q, const AttentionSizes& n, const AttentionOptions& options) {
  for (const Tensor* x : {&options.bias, &options.relative_bias, &options.sinks}) {
    if (x->defined()) detail::check_same_dtype("attention", q, *x);
  }
  const Shape scores{n.batch, n.heads, n.queries, n.keys};
  if (options.bias.defined() && broadcast_shapes("attention", options.bias.shape(), scores) != scores) {
    fail<ShapeError>("[attention] a bias of shape {} does not broadcast to (B, H, Tq, Tk) = {}",
                     to_string(options.bias.shape()), to_string(scores));
  }
  const Shape per_head{n.heads, n.distances()}, shared{1, n.distances()};
  if (const Tensor& r = options.relative_bias; r.defined() && r.shape() != per_head && r.shape() != shared) {
    fail<ShapeError>("[attention] relative_bias must have the shape (H, Tq + Tk - 1) = {} or {}, and has {}",
                     to_string(per_head), to_string(shared), to_string(r.shape()));
  }
  if (options.sinks.defined() && options.sinks.shape() != Shape{n.heads}) {
    fail<ShapeError>("[attention] sinks need shape (H,) = {}, one for each query head, and have shape {}",
                     to_string(Shape{n.heads}), to_string(options.sinks.shape()));
  }
}

}  // namespace

AttentionSizes detail::check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const AttentionOptions& options) {
  check_tensors(q, k, v);
  const AttentionSizes sizes{.batch = q.size(0),
                             .heads = q.size(1),
                             .key_heads = k.size(1),
                             .queries = q.size(2),
                             .keys = k.size(2),
                             .head_size = q.size(3),
                             .value_size = v.defined() ? v.size(3) : 0};
  check_numbers(options);
  check_biases(q, sizes, options);
  options.mask.check(sizes.batch, sizes.heads, sizes.queries, sizes.keys);
  return sizes;
}

double detail::scale_of(const Tensor& q, const AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
}

std::optional<std::uint64_t> detail::draw_dropout_key(const AttentionOptions& options) {
  if (options.dropout == 0 || !training()) return std::nullopt;
  return draw_key();
}

namespace {

detail::KernelRuns attention_runs("attention"), attention_backward_runs("attention_backward");

// An array of up to four axes as a view that walks the shape `to`.
template <class T, class Array>
kernels::View4<T> view(const T* data, const Array& shape, const Strides& strides, const Shape& to) {
  const Strides steps = kernels::broadcast_strides(shape, strides, to);
  return {data, {steps[0], steps[1], steps[2], steps[3]}};
}
template <class T>
kernels::View4<T> view(const Tensor& x, const Shape& to) {
  return view(x.data<T>(), x.shape(), x.strides(), to);
}

kernels::AttentionMask view_of_mask(const Mask& mask, const Shape& scores) {
  const Mask::Parts& parts = mask.parts();
  kernels::AttentionMask view_of{.causal = parts.causal, .window = parts.window};
  if (parts.lengths) view_of.lengths = parts.lengths->data();
  if (const auto& seen = parts.seen) {
    view_of.seen = view(seen->data(), seen->shape(), contiguous_strides(seen->shape()), scores);
  }
  return view_of;
}

// The arguments of one call. The small tensors relative_bias and sinks are contiguous.
struct Call {
  AttentionSizes sizes;
  Tensor q, k, v;
  AttentionOptions options;
  double scale;
  std::optional<std::uint64_t> dropout_key;

  template <class T>
  kernels::AttentionInputs<T> inputs() const {
    const Shape scores{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    kernels::AttentionInputs<T> in{.sizes = sizes,
                                   .q = view<T>(q, q.shape()),
                                   .k = view<T>(k, k.shape()),
                                   .v = view<T>(v, v.shape()),
                                   .scale = scale,
                                   .softcap = options.softcap,
                                   .mask = view_of_mask(options.mask, scores)};
    if (options.bias.defined()) in.bias = view<T>(options.bias, scores);
    if (options.relative_bias.defined()) {
      in.relative_bias = options.relative_bias.data<T>();
      in.relative_heads = options.relative_bias.size(0);
    }
    if (options.sinks.defined()) in.sinks = options.sinks.data<T>();
    if (dropout_key) in.dropout.emplace(*dropout_key, options.dropout, sizes.keys);
    return in;
  }
};

struct FusedAttention {
  Tensor output;
  Tensor rows;  // (B, H, Tq, 2): shift and scale of every softmax
};

FusedAttention fused_attention(const Call& call) {
  const AttentionSizes& n = call.sizes;
  const Dtype dtype = call.q.dtype();
  FusedAttention y{empty({n.batch, n.heads, n.queries, n.value_size}, dtype),
                   empty({n.batch, n.heads, n.queries, 2}, dtype)};
  dispatch(dtype, [&]<class T>() {
    kernels::attention(call.inputs<T>(), detail::fresh_data<T>(y.output),
                       reinterpret_cast<kernels::SoftmaxRow<T>*>(detail::fresh_data<T>(y.rows)));
  });
  attention_runs.count();
  return y;
}

// A shape with exactly four axes, of size 1 where the bias repeats.
std::array<std::int64_t, 4> bias_shape(const Shape& shape) {
  std::array<std::int64_t, 4> result{1, 1, 1, 1};
  std::copy_backward(shape.begin(), shape.end(), result.end());
  return result;
}

// The gradients of q, k, v, bias, relative_bias and sinks.
Gradients fused_gradients(const Call& call, const FusedAttention& y, const Tensor& dy,
                          const NeedsGradient& needs) {
  attention_backward_runs.count();
  const Dtype dtype = dy.dtype();
  std::array<Tensor, 6> d;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (needs[i]) d[i] = empty(needs.shape(i), dtype);
  }
  dispatch(dtype, [&]<class T>() {
    const auto data = [&](std::size_t i) { return d[i].defined() ? detail::fresh_data<T>(d[i]) : nullptr; };
    const kernels::AttentionInputs<T> in = call.inputs<T>();
    const kernels::AttentionCotangent<T> cotangent{
        y.output.data<T>(), reinterpret_cast<const kernels::SoftmaxRow<T>*>(y.rows.data<T>()),
        view<T>(dy, dy.shape())};
    kernels::AttentionGradients<T> out{.dq = data(0),
                                       .dk = data(1),
                                       .dv = data(2),
                                       .dbias = data(3),
                                       .drelative = data(4),
                                       .dsinks = data(5)};
    if (out.dq || out.dk || out.dv || out.drelative || out.dsinks) {
      const Tensor workspace = empty({kernels::attention_backward_workspace(call.sizes)}, dtype);
      kernels::attention_backward(in, cotangent, out, detail::fresh_data<T>(workspace));
    }
    if (out.dbias) {
      out.bias_shape = bias_shape(needs.shape(3));
      kernels::attention_bias_backward(in, cotangent, out);
    }
  });
  return {d[0], d[1], d[2], d[3], d[4], d[5]};
}

Tensor contiguous_or_undefined(const Tensor& x) { return x.defined() ? contiguous(x) : x; }

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  Call call{detail::check_attention(q, k, v, options), q, k, v, options, detail::scale_of(q, options),
            detail::draw_dropout_key(options)};
  const Tensor& bias = options.bias;
  const Tensor relative = call.options.relative_bias = contiguous_or_undefined(options.relative_bias);
  const Tensor sinks = call.options.sinks = contiguous_or_undefined(options.sinks);
  const auto [output, rows] = fused_attention(call);

  // The rule captures no tensor: it finds them among what is saved.
  call.q = call.k = call.v = call.options.bias = call.options.relative_bias = call.options.sinks = Tensor();
  return record("attention", output, {q, k, v, bias, relative, sinks},
                {q, k, v, bias, relative, sinks, output, rows},
                [call](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) -> Gradients {
                  Call again = call;
                  again.q = saved[0];
                  again.k = saved[1];
                  again.v = saved[2];
                  again.options.bias = saved[3];
                  again.options.relative_bias = saved[4];
                  again.options.sinks = saved[5];
                  if (!recording()) return fused_gradients(again, {saved[6], saved[7]}, dy, needs);
                  return detail::attention_gradients_in_ops(again.q, again.k, again.v, again.options,
                                                            call.dropout_key, dy, needs);
                });
}

}  // namespace fovea
