#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "autograd/base/non_finite.h"
#include "autograd/ops/ids.h"
#include "autograd/ops/reference.h"
#include "autograd/ops/rows.h"
#include "fovea/autograd/graph/graph.h"

namespace fovea {

using detail::row_major;
using detail::Rows;
using kernels::Block;

namespace {

detail::KernelRuns cross_entropy_runs("cross_entropy"), cross_entropy_backward_runs("cross_entropy_backward");

// The targets and options of one call, checked.
struct Targets {
  Indices ids;
  std::optional<std::int64_t> ignored;
  Reduction reduction;
  double smoothing;
  double z_loss;
  std::int64_t kept = 0;
  double total_weight = 0;  // of all classes
  double divisor = 0;       // what the mean divides by

  bool keeps(std::int64_t row) const { return ids[row] != ignored; }
  bool per_row() const { return reduction == Reduction::none; }
  double scale() const {
    if (reduction != Reduction::mean) return 1;
    return divisor > 0 ? 1 / divisor : 0;
  }
};

// The loss of a row is sum_c q_c (-log p_c) + z logsumexp^2, where q_c = smooth w_c, and `hit` more at the
// target.
struct RowWeights {
  double hit;
  double smooth;
  double mass;  // sum_c q_c
  double z;
};

// The weights of a row whose target is a class of that weight.
RowWeights row_weights(const Targets& targets, std::int64_t classes, double weight) {
  const double hit = (1 - targets.smoothing) * weight;
  const double smooth = targets.smoothing / static_cast<double>(classes);
  return {hit, smooth, hit + smooth * targets.total_weight, targets.z_loss * weight};
}

void check_options(const Shape& logits, const CrossEntropyOptions& options) {
  const double eps = options.label_smoothing;
  if (!(eps >= 0 && eps <= 1)) {
    fail<ValueError>("[cross_entropy] label_smoothing is {}: it is a share, from 0 to 1", eps);
  }
  if (!(options.z_loss >= 0 && options.z_loss < infinity)) {
    fail<ValueError>("[cross_entropy] z_loss is {}: it must be 0 or more, 1e-4 say", options.z_loss);
  }
  const Tensor& weights = options.class_weights;
  if (!weights.defined()) return;
  if (weights.shape() != Shape{logits.back()}) {
    fail<ShapeError>("[cross_entropy] class_weights have shape {}, but logits {} need ({},)",
                     to_string(weights.shape()), to_string(logits), logits.back());
  }
  if (weights.requires_grad()) {
    throw GraphError(
        "[cross_entropy] class_weights require a gradient, and get none: pass class_weights.detach()");
  }
  for (const double weight : weights.to_vector()) {
    if (!(weight >= 0 && weight < infinity)) {
      fail<ValueError>("[cross_entropy] one of the class_weights is {}: each must be 0 or more", weight);
    }
  }
}

// Throws: ShapeError, DtypeError, IndexError, ValueError, GraphError.
Targets check_targets(const Tensor& logits, const Indices& ids, const CrossEntropyOptions& options) {
  const Shape& shape = logits.shape();
  if (shape.empty() || Shape(shape.begin(), shape.end() - 1) != ids.shape()) {
    fail<ShapeError>(
        "[cross_entropy] logits (..., V) need targets (...), one for each row: they are {} and {}",
        to_string(shape), to_string(ids.shape()));
  }
  check_options(shape, options);
  Targets targets{ids, options.ignore_index, options.reduction, options.label_smoothing, options.z_loss};
  targets.kept = detail::count_ids("cross_entropy", "target", ids, shape.back(), options.ignore_index);
  targets.total_weight = static_cast<double>(shape.back());
  targets.divisor = static_cast<double>(targets.kept);
  if (!options.class_weights.defined()) return targets;
  detail::check_same_dtype("cross_entropy", logits, options.class_weights);
  const std::vector<double> weights = options.class_weights.to_vector();
  targets.total_weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  targets.divisor = 0;
  for (std::int64_t row = 0; row < ids.numel(); ++row) {
    if (targets.keeps(row)) targets.divisor += weights[static_cast<std::size_t>(ids[row])];
  }
  return targets;
}

// The weights of classes (V,), row-major.
Tensor class_weights(const Tensor& logits, const CrossEntropyOptions& options) {
  return options.class_weights.defined() ? row_major(options.class_weights)
                                         : ones({logits.shape().back()}, logits.dtype());
}

// weight * value, and 0 for a weight of 0 even if the value is infinite.
double times(double weight, double value) { return weight == 0 ? 0 : weight * value; }

// --- Kernels -----------------------------------------------------------------------------------------------

// The probabilities of a row are exp(x - shift) scale, where the scale of a row of -inf is 0. In a row that
// holds +inf the shift is infinite, and the probability of that element is the scale.

// sum_c w_c (shift - x_c)
template <class T>
double weighted_depth(const T* x, const T* w, std::int64_t n, T shift) {
  Block<double> total = Block<double>::Zero();
  kernels::for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> depth = shift - kernels::load_part(x + i, count);
    const Block<T> weight = kernels::load_part(w + i, count);
    Block<T> product;
    kernels::for_each_lane([&](int k) { product[k] = weight[k] == 0 ? T(0) : weight[k] * depth[k]; });
    total += kernels::cast<double>(product);
  });
  return total.sum();
}

// The loss of a row in which the logit +inf has all the probability, as softmax tends to: only what the other
// classes are expected to have costs something.
template <class T>
double loss_with_infinity(const T* x, const T* w, std::int64_t n, std::int64_t target, const RowWeights& q) {
  double expected = x[target] < std::numeric_limits<T>::max() ? q.hit : 0;
  for (std::int64_t c = 0; c < n; ++c) {
    if (x[c] <= std::numeric_limits<T>::max()) expected += q.smooth * static_cast<double>(w[c]);
  }
  return times(expected + q.z, infinity);
}

template <class T>
double row_loss(const T* x, const T* w, std::int64_t n, std::int64_t target, const RowWeights& q, T& shift,
                T& scale) {
  shift = kernels::shift_of_row(x, n);
  const double total = kernels::sum_exp(x, n, shift);
  scale = total == 0 ? T(0) : static_cast<T>(1 / total);
  if (total == 0) return times(q.mass + q.z, infinity);
  if (std::isinf(total)) {
    shift = std::numeric_limits<T>::infinity();
    scale = kernels::weight_of_infinity(x, n);
    return loss_with_infinity(x, w, n, target, q) * static_cast<double>(scale);
  }
  const double log_total = kernels::log_of_sum_exp(x, n, shift, total);
  const auto from = static_cast<double>(shift);
  // The shift may be far larger than differences from it, so these are computed before anything is added.
  double loss = times(q.hit, log_total - (static_cast<double>(x[target]) - from));
  if (q.smooth > 0) loss += (q.mass - q.hit) * log_total + q.smooth * weighted_depth(x, w, n, shift);
  return loss + times(q.z, (log_total + from) * (log_total + from));
}

// dx_c = (p_c (mass + 2 z logsumexp) - q_c) dy, and 0 in a row of -inf.
template <class T>
void row_backward(const T* x, const T* w, std::int64_t n, std::int64_t target, const RowWeights& q, T shift,
                  T scale, double dy, T* dx) {
  const bool possible = scale != 0;
  const double logsumexp = static_cast<double>(shift) - std::log(static_cast<double>(scale));
  const T of_p = possible ? scale * static_cast<T>((q.mass + times(2 * q.z, logsumexp)) * dy) : T(0);
  const T of_w = possible ? static_cast<T>(q.smooth * dy) : T(0);
  kernels::for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> logits = kernels::load_part(x + i, count);
    Block<T> part = kernels::exp<T>(logits - shift) * of_p;
    if (std::isinf(shift)) part = (logits == shift).select(of_p, Block<T>::Zero());
    if (of_w != 0) part -= kernels::load_part(w + i, count) * of_w;
    kernels::store_part<T>(part, dx + i, count);
  });
  if (!possible) return;
  const T hit = static_cast<T>(q.hit * dy), certain = dx[target];
  dx[target] -= hit;
  if (std::abs(dx[target]) * 64 >= std::abs(certain)) return;
  // Of a probability near 1 hardly a digit is left. The gradients of a row add up to that of the z-loss.
  dx[target] = 0;
  const double others = std::accumulate(dx, dx + n, 0.0);
  dx[target] = static_cast<T>(times(2 * q.z, logsumexp) * dy - others);
}

// Computes the loss and fills `statistics` (2, rows): the shifts of all rows, then their scales.
Tensor fused_loss(const Tensor& logits, const Tensor& weights, const Targets& targets,
                  const Tensor& statistics) {
  Tensor loss = empty(targets.per_row() ? targets.ids.shape() : Shape(), logits.dtype());
  const Rows rows(logits.shape());
  dispatch(logits.dtype(), [&, flat = row_major(logits)]<class T>() {
    const T* x = flat.template data<T>();
    const T* w = weights.data<T>();
    T* shift = detail::fresh_data<T>(statistics);
    T* scale = shift + rows.count;
    std::vector<double> losses(static_cast<std::size_t>(rows.count), 0.0);
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      if (!targets.keeps(row)) return;
      const std::int64_t target = targets.ids[row];
      const RowWeights q = row_weights(targets, n, static_cast<double>(w[target]));
      losses[static_cast<std::size_t>(row)] = row_loss(x + row * n, w, n, target, q, shift[row], scale[row]);
    });
    T* out = detail::fresh_data<T>(loss);
    if (targets.per_row()) {
      std::ranges::transform(losses, out, [](double value) { return static_cast<T>(value); });
    } else {
      *out = static_cast<T>(times(targets.scale(), std::accumulate(losses.begin(), losses.end(), 0.0)));
    }
  });
  cross_entropy_runs.count();
  return loss;
}

Tensor fused_gradient(const Tensor& logits, const Tensor& weights, const Tensor& statistics, const Tensor& dy,
                      const Targets& targets) {
  Tensor dx = empty(logits.shape(), logits.dtype());
  const Rows rows(logits.shape());
  dispatch(logits.dtype(), [&, flat = row_major(logits), upstream = row_major(dy)]<class T>() {
    const T* x = flat.template data<T>();
    const T* w = weights.data<T>();
    const T* shift = statistics.data<T>();
    const T* scale = shift + rows.count;
    const T* g = upstream.template data<T>();
    T* out = detail::fresh_data<T>(dx);
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      if (!targets.keeps(row)) return (void)std::fill_n(out + row * n, n, T(0));
      const std::int64_t target = targets.ids[row];
      const RowWeights q = row_weights(targets, n, static_cast<double>(w[target]));
      const double of_row = static_cast<double>(g[targets.per_row() ? row : 0]) * targets.scale();
      row_backward(x + row * n, w, n, target, q, shift[row], scale[row], of_row, out + row * n);
    });
  });
  cross_entropy_backward_runs.count();
  return dx;
}

// --- The same in ops ---------------------------------------------------------------------------------------

// Whether each row is kept, (..., 1).
Bool kept_rows(const Targets& targets) {
  Shape shape = targets.ids.shape();
  shape.push_back(1);
  return Bool(shape, [&](std::uint8_t* out) {
    for (std::int64_t row = 0; row < targets.ids.numel(); ++row) out[row] = targets.keeps(row);
  });
}

// Whether a class is the target of its row, (..., V).
Bool target_places(const Targets& targets, const Shape& logits) {
  return Bool(logits, [&](std::uint8_t* out) {
    std::fill_n(out, numel(logits), std::uint8_t{0});
    for (std::int64_t row = 0; row < targets.ids.numel(); ++row) {
      if (targets.keeps(row)) out[row * logits.back() + targets.ids[row]] = 1;
    }
  });
}

// The weights of all rows as tensors, q (..., V) and z (..., 1), both 0 in a row that is ignored.
struct Spread {
  Tensor q, z;
};
Spread spread(const Targets& targets, const Tensor& logits, const Tensor& weights) {
  const std::int64_t n = logits.shape().back();
  const std::vector<double> w = weights.to_vector();
  std::vector<double> q(static_cast<std::size_t>(logits.numel()), 0.0);
  std::vector<double> z(static_cast<std::size_t>(targets.ids.numel()), 0.0);
  for (std::int64_t row = 0; row < targets.ids.numel(); ++row) {
    if (!targets.keeps(row)) continue;
    const auto target = static_cast<std::size_t>(targets.ids[row]);
    const RowWeights of_row = row_weights(targets, n, w[target]);
    const auto begin = q.begin() + row * n;
    std::ranges::transform(w, begin, [&](double weight) { return of_row.smooth * weight; });
    begin[targets.ids[row]] += of_row.hit;
    z[static_cast<std::size_t>(row)] = of_row.z;
  }
  Shape shape = targets.ids.shape();
  shape.push_back(1);
  return {from_values(q, logits.shape(), logits.dtype()), from_values(z, shape, logits.dtype())};
}

Tensor reference_gradient(const Tensor& logits, const Tensor& weights, const Tensor& dy,
                          const Targets& targets) {
  const Bool kept = kept_rows(targets);
  const auto [q, z] = spread(targets, logits, weights);
  const Tensor x = where(kept, logits, 0.0);
  Tensor of_p = sum(q, -1, keepdims), of_z = zeros(of_p.shape(), of_p.dtype());
  if (targets.z_loss > 0) {
    of_z = 2 * z * reference::logsumexp(x, -1, keepdims);
    of_p = of_p + of_z;
  }
  const Tensor of_row = (targets.per_row() ? reshape(dy, kept.shape()) : dy) * targets.scale();
  // A row adds up to of_z. So the element of the target follows from the others: p - 1 would cancel.
  const Bool at_target = target_places(targets, logits.shape());
  const Tensor others = where(at_target, 0.0, softmax(x) * of_p - q);
  const Tensor dx = where(at_target, of_z - sum(others, -1, keepdims), others) * of_row;
  return where(kept & any(logits != -infinity, -1), dx, 0.0);
}

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const Indices& ids, const CrossEntropyOptions& options) {
  const Targets targets = check_targets(logits, ids, options);
  const Tensor weights = class_weights(logits, options);
  const Tensor statistics = empty({2, ids.numel()}, logits.dtype());
  const Tensor loss = fused_loss(logits, weights, targets, statistics);
  const Tensor recorded =
      record("cross_entropy", loss, {logits}, {logits, weights, statistics},
             [targets](const Saved& saved, const Tensor& dy, const NeedsGradient&) -> Gradients {
               if (recording()) return {reference_gradient(saved[0], saved[1], dy, targets)};
               return {fused_gradient(saved[0], saved[1], saved[2], dy, targets)};
             });
  return {recorded, targets.kept, targets.divisor};
}

CrossEntropy reference::cross_entropy(const Tensor& logits, const Indices& ids,
                                      const CrossEntropyOptions& options) {
  const Targets targets = check_targets(logits, ids, options);
  const auto [q, z] = spread(targets, logits, class_weights(logits, options));
  const Tensor x = where(kept_rows(targets), logits, 0.0);
  Tensor losses = sum(where(q == 0.0, 0.0, -q * reference::log_softmax(x)), -1);
  if (targets.z_loss > 0) {
    const Tensor lse = reference::logsumexp(x, -1);
    const Tensor of_row = reshape(z, lse.shape());
    losses = losses + where(of_row == 0.0, 0.0, of_row * lse * lse);
  }
  return {targets.per_row() ? losses : sum(losses) * targets.scale(), targets.kept, targets.divisor};
}

}  // namespace fovea
