#include <cmath>
#include <limits>

#include "fovea/train/optimizers/optimizer.h"
#include "train/optimizers/update_loop.h"

namespace fovea {

Adam::Adam(std::vector<NamedTensor> parameters, const AdamOptions& options)
    : Adam("Adam", std::move(parameters), options, {}) {}

Adam::Adam(const char* name, std::vector<NamedTensor> parameters, const AdamOptions& options,
           const std::optional<WeightDecay>& decay, const std::function<bool(const NamedTensor&)>& uses_adam)
    : Optimizer(name, std::move(parameters), options.learning_rate, options.groups, decay),
      beta1_(options.beta1),
      beta2_(options.beta2),
      eps_(options.eps),
      m_(add_state("m", false, uses_adam)),
      v_(add_state("v", false, uses_adam)),
      updates_(add_state("updates", true, uses_adam)) {
  check_option("beta1", beta1_, 0, 1);
  check_option("beta2", beta2_, 0, 1);
  check_option("eps", eps_, 0, std::numeric_limits<double>::infinity());
}

void Adam::update(std::size_t i, const Tensor& gradient, double rate) {
  Tensor parameter = parameters()[i].tensor;
  const double t = *updates_[i].mutable_data<double>() += 1;
  dispatch(parameter.dtype(), [&]<class T>() {
    const T beta1 = static_cast<T>(beta1_), rest1 = static_cast<T>(1 - beta1_);
    const T beta2 = static_cast<T>(beta2_), rest2 = static_cast<T>(1 - beta2_);
    const T corrected_rate = static_cast<T>(rate / (1 - std::pow(beta1_, t)));
    const T root_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, t)));
    const T eps = static_cast<T>(eps_);
    const T decay = static_cast<T>(1 - rate * settings()[i].weight_decay);
    T* p = parameter.mutable_data<T>();
    T* m = m_[i].mutable_data<T>();
    T* v = v_[i].mutable_data<T>();
    const T* g = gradient.data<T>();
    detail::for_each_element(parameter.numel(), [=](std::int64_t j) {
      m[j] = beta1 * m[j] + rest1 * g[j];
      v[j] = beta2 * v[j] + rest2 * g[j] * g[j];
      const T size = std::sqrt(v[j]) * root_scale + eps;
      // Where eps and all gradients so far are 0, there is nothing to step by.
      const T step = size == 0 ? T(0) : corrected_rate * m[j] / size;
      p[j] = decay * p[j] - step;
    });
  });
}

AdamW::AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options)
    : Adam("AdamW", std::move(parameters),
           {options.learning_rate, options.beta1, options.beta2, options.eps, options.groups},
           WeightDecay{options.weight_decay, options.decays}) {}

}  // namespace fovea
