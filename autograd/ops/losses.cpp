#include <algorithm>
#include <cmath>

#include "autograd/kernels/vector_math.h"
#include "autograd/ops/elementwise.h"

namespace fovea {

using detail::Block;

namespace {

// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which is accurate for large x of either sign.
Tensor softplus(const Tensor& x) {
  const auto value = []<class T>(const Block<T>& v) {
    const Block<T> magnitude = -v.abs();
    const Block<T> small = kernels::exp(magnitude);
    Block<T> result;
    for (int i = 0; i < kernels::block_size; ++i) {
      result[i] = (v[i] <= 0 ? T(0) : v[i]) + std::log1p(small[i]);
    }
    return result;
  };
  return detail::unary_op("softplus", x, value, detail::In::x, [](const Tensor& x) { return sigmoid(x); });
}

void check_pair(const char* op, const char* name_a, const Tensor& a, const char* name_b, const Tensor& b) {
  detail::check_same_dtype(op, a, b);
  if (a.shape() == b.shape()) return;
  fail<ShapeError>("[{}] {} and {} differ in shape: {} and {}. They are not broadcast: reshape one of them",
                   op, name_a, name_b, to_string(a.shape()), to_string(b.shape()));
}

Tensor reduce(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  if (reduction == Reduction::sum) return sum(losses);
  return sum(losses) / static_cast<double>(std::max<std::int64_t>(1, losses.numel()));
}

}  // namespace

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        const BinaryCrossEntropyOptions& options) {
  constexpr const char* op = "binary_cross_entropy_with_logits";
  check_pair(op, "logits", logits, "targets", targets);
  Tensor positives = targets;
  if (const Tensor& p = options.pos_weight; p.defined()) {
    detail::check_same_dtype(op, logits, p);
    if (broadcast_shapes(op, logits.shape(), p.shape()) != logits.shape()) {
      fail<ShapeError>("[{}] pos_weight {} is wider than the logits {}", op, to_string(p.shape()),
                       to_string(logits.shape()));
    }
    positives = p * targets;
  }
  // -log sigmoid(x) = softplus(-x), and -log(1 - sigmoid(x)) = softplus(x): terms of one sign, which do not
  // cancel.
  return reduce(positives * softplus(-logits) + (1.0 - targets) * softplus(logits), options.reduction);
}

Tensor mean_squared_error(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  check_pair("mean_squared_error", "prediction", prediction, "target", target);
  const Tensor error = prediction - target;
  return reduce(error * error, reduction);
}

}  // namespace fovea
