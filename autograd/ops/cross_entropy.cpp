#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/ops/ids.h"
#include "autograd/ops/rows.h"
#include "fovea/autograd/composed.h"
#include "fovea/autograd/graph.h"

namespace fovea {

using detail::row_major;
using detail::Rows;
using kernels::Block;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What each row of logits should predict.
struct Targets {
  Indices ids;
  std::optional<std::int64_t> ignored;
  Reduction reduction;
  std::int64_t kept;

  bool keeps(std::int64_t row) const { return ids[row] != ignored; }
  bool per_row() const { return reduction == Reduction::none; }
  double divisor() const {
    return reduction == Reduction::mean ? static_cast<double>(std::max<std::int64_t>(1, kept)) : 1;
  }
};

// Throws: ShapeError, IndexError.
Targets check_targets(const Tensor& logits, const Indices& ids, const CrossEntropyOptions& options) {
  const Shape& shape = logits.shape();
  if (shape.empty() || Shape(shape.begin(), shape.end() - 1) != ids.shape()) {
    fail<ShapeError>(
        "[cross_entropy] logits (..., V) need targets (...), one for each row: they are {} and {}",
        to_string(shape), to_string(ids.shape()));
  }
  const std::int64_t kept =
      detail::count_ids("cross_entropy", "target", ids, shape.back(), options.ignore_index);
  return {ids, options.ignore_index, options.reduction, kept};
}

// --- Kernels. The probabilities of a row are exp(x - shift) scale, with scale 0 in a row of -inf ---

// log sum_j exp(x_j - shift) - (x_target - shift)
template <class T>
double row_loss(const T* x, std::int64_t n, std::int64_t target, T& shift, T& scale) {
  shift = kernels::shift_of_row(x, n);
  const double total = kernels::sum_exp(x, n, shift);
  scale = total == 0 ? T(0) : static_cast<T>(1 / total);
  if (total == 0) return infinity;
  return std::log(total) - (static_cast<double>(x[target]) - static_cast<double>(shift));
}

// dx = (softmax(x) - onehot(target)) weight, and 0 in a row of -inf.
template <class T>
void row_backward(const T* x, std::int64_t n, std::int64_t target, T shift, T scale, T weight, T* dx) {
  kernels::for_each_block(n, [&](std::int64_t i, auto count) {
    const Block<T> shifted = kernels::load_part(x + i, count) - shift;
    kernels::store_part<T>(kernels::exp(shifted) * (scale * weight), dx + i, count);
  });
  if (scale != 0) dx[target] -= weight;
}

// The loss. Fills `statistics` (2, rows): the shifts, then the scales.
Tensor fused_loss(const Tensor& logits, const Targets& targets, const Tensor& statistics) {
  Tensor loss = empty(targets.per_row() ? targets.ids.shape() : Shape(), logits.dtype());
  const Rows rows(logits.shape());
  dispatch(logits.dtype(), [&, flat = row_major(logits)]<class T>() {
    const T* x = flat.template data<T>();
    T* shift = detail::fresh_data<T>(statistics);
    T* scale = shift + rows.count;
    std::vector<double> losses(static_cast<std::size_t>(rows.count), 0.0);
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      if (!targets.keeps(row)) return;
      losses[static_cast<std::size_t>(row)] =
          row_loss(x + row * n, n, targets.ids[row], shift[row], scale[row]);
    });
    T* out = detail::fresh_data<T>(loss);
    if (targets.per_row()) {
      std::ranges::transform(losses, out, [](double value) { return static_cast<T>(value); });
    } else {
      double total = 0;
      for (const double value : losses) total += value;
      *out = static_cast<T>(total / targets.divisor());
    }
  });
  detail::count_run(Kernel::cross_entropy);
  return loss;
}

Tensor fused_gradient(const Tensor& logits, const Tensor& statistics, const Tensor& dy,
                      const Targets& targets) {
  Tensor dx = empty(logits.shape(), logits.dtype());
  const Rows rows(logits.shape());
  dispatch(logits.dtype(), [&, flat = row_major(logits), upstream = row_major(dy)]<class T>() {
    const T* x = flat.template data<T>();
    const T* shift = statistics.data<T>();
    const T* scale = shift + rows.count;
    const T* g = upstream.template data<T>();
    T* out = detail::fresh_data<T>(dx);
    const auto weight_of = [&](std::int64_t row) {
      return static_cast<T>(static_cast<double>(g[targets.per_row() ? row : 0]) / targets.divisor());
    };
    kernels::for_each_row(rows.count, rows.length, [&, n = rows.length](std::int64_t row) {
      if (targets.keeps(row)) {
        row_backward(x + row * n, n, targets.ids[row], shift[row], scale[row], weight_of(row), out + row * n);
      } else {
        std::fill_n(out + row * n, n, T(0));
      }
    });
  });
  detail::count_run(Kernel::cross_entropy_backward);
  return dx;
}

// --- The same in ops
// ------------------------------------------------------------------------------------------

// (..., 1): the rows that count.
Bool kept_rows(const Targets& targets) {
  Shape shape = targets.ids.shape();
  shape.push_back(1);
  return Bool(shape, [&](std::uint8_t* out) {
    for (std::int64_t row = 0; row < targets.ids.numel(); ++row) out[row] = targets.keeps(row);
  });
}

// (..., V): the target's place in every row that counts.
Bool one_hot(const Targets& targets, const Shape& shape) {
  return Bool(shape, [&](std::uint8_t* out) {
    std::fill_n(out, numel(shape), std::uint8_t{0});
    for (std::int64_t row = 0; row < targets.ids.numel(); ++row) {
      if (targets.keeps(row)) out[row * shape.back() + targets.ids[row]] = 1;
    }
  });
}

Tensor composed_gradient(const Tensor& logits, const Tensor& dy, const Targets& targets) {
  const Bool kept = kept_rows(targets);
  const Tensor p = softmax(where(kept, logits, 0.0));
  const Tensor weight = (targets.per_row() ? reshape(dy, kept.shape()) : dy) * (1 / targets.divisor());
  const Tensor dx = where(one_hot(targets, logits.shape()), p - 1.0, p) * weight;
  return where(kept & any(logits != -infinity, -1), dx, 0.0);
}

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const Indices& ids, const CrossEntropyOptions& options) {
  const Targets targets = check_targets(logits, ids, options);
  const Tensor statistics = empty({2, ids.numel()}, logits.dtype());
  const Tensor loss = fused_loss(logits, targets, statistics);
  const Tensor recorded = record("cross_entropy", loss, {logits}, {logits, statistics},
                                 [targets](const Saved& saved, const Tensor& dy, const Needs&) -> Gradients {
                                   if (recording()) return {composed_gradient(saved[0], dy, targets)};
                                   return {fused_gradient(saved[0], saved[1], dy, targets)};
                                 });
  return {recorded, targets.kept};
}

CrossEntropy composed::cross_entropy(const Tensor& logits, const Indices& ids,
                                     const CrossEntropyOptions& options) {
  const Targets targets = check_targets(logits, ids, options);
  const Tensor log_p = composed::log_softmax(where(kept_rows(targets), logits, 0.0));
  const Tensor losses = 0.0 - sum(where(one_hot(targets, logits.shape()), log_p, 0.0), -1);
  return {targets.per_row() ? losses : sum(losses) * (1 / targets.divisor()), targets.kept};
}

}  // namespace fovea
