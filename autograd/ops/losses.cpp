#include <algorithm>
#include <limits>

#include "autograd/kernels/logistic.h"
#include "autograd/ops/elementwise.h"

namespace fovea {

using detail::Block;

namespace {

// log(1 + exp(x)), without overflow.
Tensor softplus(const Tensor& x) {
  constexpr auto value = [](const auto& v) { return kernels::softplus(v); };
  return detail::unary_op("softplus", x, value, In::x, sigmoid);
}

// w softplus(x), and 0 where w is 0 even if x is infinite: what is certain and right costs nothing.
Tensor weighted_softplus(const Tensor& w, const Tensor& x) {
  constexpr const char* name = "weighted_softplus";
  const Tensor y =
      detail::map_binary(name, w, x, []<class T>(const Block<T>& weight, const Block<T>& v) -> Block<T> {
        const Block<T> terms = kernels::softplus(v);
        Block<T> result;
        kernels::for_each_lane([&](int i) {
          const T finite = terms[i] > std::numeric_limits<T>::max() ? T(0) : T(1);
          const bool counts = (weight[i] != 0) | (finite != 0);
          result[i] = counts ? weight[i] * terms[i] : T(0);
        });
        return result;
      });
  return record(name, y, {w, x}, {w, x},
                [](const Saved& saved, const Tensor& dy, const NeedsGradient& needs) {
                  const Tensor w = saved[0], x = saved[1];
                  return detail::broadcast_gradients(
                      needs, [&] { return detail::multiply_no_nan(dy, softplus(x)); },
                      [&] { return detail::multiply_no_nan(dy, w * sigmoid(x)); });
                });
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
  return reduce(weighted_softplus(positives, -logits) + weighted_softplus(1.0 - targets, logits),
                options.reduction);
}

Tensor mean_squared_error(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  check_pair("mean_squared_error", "prediction", prediction, "target", target);
  const Tensor error = prediction - target;
  return reduce(error * error, reduction);
}

}  // namespace fovea
