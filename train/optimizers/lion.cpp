#include "fovea/train/optimizers/optimizer.h"
#include "train/optimizers/update_loop.h"

namespace fovea {

Lion::Lion(std::vector<NamedTensor> parameters, const LionOptions& options)
    : Optimizer("Lion", std::move(parameters), options.learning_rate, options.groups,
                WeightDecay{options.weight_decay, options.decays}),
      beta1_(options.beta1),
      beta2_(options.beta2),
      momentum_(add_state("momentum")) {
  check_option("beta1", beta1_, 0, 1);
  check_option("beta2", beta2_, 0, 1);
}

void Lion::update(std::size_t i, const Tensor& gradient) {
  Tensor parameter = parameters()[i].tensor;
  dispatch(parameter.dtype(), [&]<class T>() {
    const T beta1 = static_cast<T>(beta1_), rest1 = static_cast<T>(1 - beta1_);
    const T beta2 = static_cast<T>(beta2_), rest2 = static_cast<T>(1 - beta2_);
    const T rate = static_cast<T>(rate_of(i)), decay = static_cast<T>(decay_multiplier(i));
    T* p = parameter.mutable_data<T>();
    T* m = momentum_[i].mutable_data<T>();
    const T* g = gradient.data<T>();
    detail::for_each_element(parameter.numel(), [=](std::int64_t j) {
      const T direction = beta1 * m[j] + rest1 * g[j];
      // The sign of zero is zero, and that of NaN is NaN.
      const T sign = direction > 0 ? T(1) : direction < 0 ? T(-1) : direction;
      p[j] = decay * p[j] - rate * sign;
      m[j] = beta2 * m[j] + rest2 * g[j];
    });
  });
}

}  // namespace fovea
