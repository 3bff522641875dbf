#include "autograd/base/fail.h"
#include "fovea/train/optimizers/optimizer.h"
#include "train/optimizers/update_loop.h"

namespace fovea {

Sgd::Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
    : Optimizer("Sgd", std::move(parameters), options.learning_rate, options.groups),
      momentum_(options.momentum),
      nesterov_(options.nesterov) {
  check_option("momentum", momentum_, 0, 1);
  if (nesterov_ && momentum_ == 0) {
    fail<ValueError>("[Sgd] nesterov is set, but momentum is 0: set a momentum, such as 0.9");
  }
  if (momentum_ > 0) velocity_ = add_state("momentum");
}

void Sgd::update(std::size_t i, const Tensor& gradient) {
  Tensor parameter = parameters()[i].tensor;
  dispatch(parameter.dtype(), [&]<class T>() {
    const T rate = static_cast<T>(rate_of(i));
    const T mu = static_cast<T>(momentum_);
    T* p = parameter.mutable_data<T>();
    const T* g = gradient.data<T>();
    if (velocity_.empty()) {
      detail::for_each_element(parameter.numel(), [=](std::int64_t j) { p[j] -= rate * g[j]; });
      return;
    }
    T* u = velocity_[i].mutable_data<T>();
    detail::for_each_element(parameter.numel(), [=, nesterov = nesterov_](std::int64_t j) {
      u[j] = mu * u[j] + g[j];
      p[j] -= rate * (nesterov ? g[j] + mu * u[j] : u[j]);
    });
  });
}

}  // namespace fovea
