#include "autograd/ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/graph/kernel_runs.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "fovea/autograd/graph/modes.h"

namespace fovea {
namespace {

using kernels::AttentionSizes;

void check_tensors(const Tensor& q, const Tensor& k, const Tensor& v) {
  detail::check_same_dtype("attention", q, k);
  if (v.defined()) detail::check_same_dtype("attention", q, v);
  if (q.rank() != 4 || k.rank() != 4 || (v.defined() && v.rank() != 4)) {
    fail<ShapeError>(
        "[attention] expects q (B, H, Tq, D), k (B, Hk, Tk, D), v (B, Hk, Tk, Dv), and got q {}, k {}, v {}: "
        "reshape what has no axis of heads",
        to_string(q.shape()), to_string(k.shape()), v.defined() ? to_string(v.shape()) : "none");
  }
  const auto refuse = [&](const char* what) {
    fail<ShapeError>("[attention] {}: q {}, k {}, v {}", what, to_string(q.shape()), to_string(k.shape()),
                     v.defined() ? to_string(v.shape()) : "none");
  };
  const bool values = v.defined();
  if (k.size(0) != q.size(0) || (values && v.size(0) != q.size(0))) refuse("the batches differ");
  if (k.size(3) != q.size(3)) refuse("queries and keys have heads of different sizes");
  if (values && v.size(2) != k.size(2)) refuse("there must be one value for each key");
  if (values && v.size(1) != k.size(1)) refuse("keys and values have different numbers of heads");
  if (k.size(1) != q.size(1) && (k.size(1) == 0 || q.size(1) % k.size(1) != 0)) {
    refuse("the number of key heads does not divide that of query heads");
  }
}

void check_numbers(const AttentionOptions& options) {
  detail::check_dropout("attention", options.dropout);
  if (!(options.softcap >= 0) || std::isinf(options.softcap)) {
    fail<ValueError>("[attention] softcap {}: it must be positive, or 0 for none", options.softcap);
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
    fail<ShapeError>("[attention] a bias by distance needs shape (H, Tq + Tk - 1) = {} or {}, and has {}",
                     to_string(per_head), to_string(shared), to_string(r.shape()));
  }
  if (options.sinks.defined() && options.sinks.shape() != Shape{n.heads}) {
    fail<ShapeError>("[attention] sinks need shape (H,) = {}, one per query head, and have {}",
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

// An array of up to four axes, broadcast to (B, H, Tq, Tk) or read as it is.
template <class T, class Array>
kernels::View4<T> view(const T* data, const Array& shape, const Strides& strides, const Shape& to) {
  const Strides steps = kernels::broadcast_strides(shape, strides, to);
  return {data, {steps[0], steps[1], steps[2], steps[3]}};
}
template <class T>
kernels::View4<T> view(const Tensor& x, const Shape& to) {
  return view(x.data<T>(), x.shape(), x.strides(), to);
}

kernels::AttentionMask read_in_place(const Mask& mask, const Shape& scores) {
  const Mask::Parts& parts = mask.parts();
  kernels::AttentionMask read{.causal = parts.causal, .window = parts.window};
  if (parts.lengths) read.lengths = parts.lengths->data();
  if (const auto& seen = parts.seen)
    read.seen = view(seen->data(), seen->shape(), contiguous_strides(seen->shape()), scores);
  return read;
}

// One call of the op. What is undefined in `options` is undefined.
struct Call {
  AttentionSizes sizes;
  AttentionOptions options;
  double scale;
  std::optional<std::uint64_t> dropout_key;

  // Every tensor is read in place but for biases by distance and sinks, which are small.
  template <class T>
  kernels::AttentionInputs<T> inputs(const Tensor& q, const Tensor& k, const Tensor& v) const {
    const Shape scores{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    kernels::AttentionInputs<T> in{.sizes = sizes,
                                   .q = view<T>(q, q.shape()),
                                   .k = view<T>(k, k.shape()),
                                   .v = view<T>(v, v.shape()),
                                   .scale = scale,
                                   .softcap = options.softcap,
                                   .mask = read_in_place(options.mask, scores)};
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

struct Fused {
  Tensor output;
  Tensor rows;  // (B, H, Tq, 2): shift and scale of every softmax
};

Fused fused_value(const Call& call, const Tensor& q, const Tensor& k, const Tensor& v) {
  const AttentionSizes& n = call.sizes;
  Fused y{empty({n.batch, n.heads, n.queries, n.value_size}, q.dtype()),
          empty({n.batch, n.heads, n.queries, 2}, q.dtype())};
  dispatch(q.dtype(), [&]<class T>() {
    kernels::attention(call.inputs<T>(q, k, v), detail::fresh_data<T>(y.output),
                       reinterpret_cast<kernels::SoftmaxRow<T>*>(detail::fresh_data<T>(y.rows)));
  });
  detail::count_run(Kernel::attention);
  return y;
}

// An axis for each of (B, H, Tq, Tk), 1 where it repeats.
std::array<std::int64_t, 4> bias_shape(const Shape& shape) {
  std::array<std::int64_t, 4> result{1, 1, 1, 1};
  std::copy_backward(shape.begin(), shape.end(), result.end());
  return result;
}

Gradients fused_gradients(const Call& call, const Tensor& q, const Tensor& k, const Tensor& v, const Fused& y,
                          const Tensor& dy, const NeedsGradient& needs) {
  detail::count_run(Kernel::attention_backward);
  std::array<Tensor, 6> d;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (needs[i]) d[i] = empty(needs.shape(i), q.dtype());
  }
  dispatch(q.dtype(), [&]<class T>() {
    const auto room = [&](std::size_t i) { return d[i].defined() ? detail::fresh_data<T>(d[i]) : nullptr; };
    const kernels::AttentionInputs<T> in = call.inputs<T>(q, k, v);
    const kernels::AttentionRun<T> run{y.output.data<T>(),
                                       reinterpret_cast<const kernels::SoftmaxRow<T>*>(y.rows.data<T>()),
                                       view<T>(dy, dy.shape())};
    kernels::AttentionGradients<T> out{.dq = room(0),
                                       .dk = room(1),
                                       .dv = room(2),
                                       .dbias = room(3),
                                       .drelative = room(4),
                                       .dsinks = room(5)};
    if (out.dq || out.dk || out.dv || out.drelative || out.dsinks) {
      const Tensor space = empty({kernels::attention_backward_space(call.sizes)}, q.dtype());
      kernels::attention_backward(in, run, out, detail::fresh_data<T>(space));
    }
    if (out.dbias) {
      out.bias_shape = bias_shape(needs.shape(3));
      kernels::attention_bias_backward(in, run, out);
    }
  });
  return {d[0], d[1], d[2], d[3], d[4], d[5]};
}

// An option among the op's inputs, where there may be none.
Tensor or_nothing(const Tensor& x, Dtype dtype) { return x.defined() ? x : empty({0}, dtype); }

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  Call call{detail::check_attention(q, k, v, options), options, detail::scale_of(q, options),
            detail::draw_dropout_key(options)};
  if (options.relative_bias.defined()) call.options.relative_bias = contiguous(options.relative_bias);
  if (options.sinks.defined()) call.options.sinks = contiguous(options.sinks);
  const Tensor bias = or_nothing(options.bias, q.dtype());
  const Tensor relative = or_nothing(call.options.relative_bias, q.dtype());
  const Tensor sinks = or_nothing(call.options.sinks, q.dtype());
  const auto [output, rows] = fused_value(call, q, k, v);

  // The rule finds the tensors among what is saved.
  const bool has_bias = options.bias.defined(), has_relative = options.relative_bias.defined(),
             has_sinks = options.sinks.defined();
  call.options.bias = call.options.relative_bias = call.options.sinks = Tensor();
  return record(
      "attention", output, {q, k, v, bias, relative, sinks}, {q, k, v, bias, relative, sinks, output, rows},
      [call, has_bias, has_relative, has_sinks](const Saved& saved, const Tensor& dy,
                                                const NeedsGradient& needs) -> Gradients {
        Call again = call;
        if (has_bias) again.options.bias = saved[3];
        if (has_relative) again.options.relative_bias = saved[4];
        if (has_sinks) again.options.sinks = saved[5];
        if (recording()) {
          return detail::attention_gradients_in_ops(saved[0], saved[1], saved[2], again.options,
                                                    call.dropout_key, dy, needs);
        }
        return fused_gradients(again, saved[0], saved[1], saved[2], {saved[6], saved[7]}, dy, needs);
      });
}

}  // namespace fovea
