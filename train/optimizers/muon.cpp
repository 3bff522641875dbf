#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/optimizers/optimizer.h"
#include "train/optimizers/update_loop.h"

namespace fovea {

bool is_matrix(const NamedTensor& parameter) { return parameter.tensor.rank() == 2; }

Tensor orthogonalized(const Tensor& G, int steps) {
  if (G.rank() != 2) {
    fail<ShapeError>("[orthogonalized] a matrix (M, N) is expected, and the tensor has shape {}",
                     to_string(G.shape()));
  }
  const NoGrad off;
  if (G.numel() == 0) return clone(G.detach());
  const double largest = max(abs(G)).item();
  if (largest == 0) return zeros(G.shape(), G.dtype());
  // The smaller side comes first, so that A is small. After division by the largest element no square
  // overflows.
  const bool is_tall = G.size(0) > G.size(1);
  Tensor X = (is_tall ? transpose(G) : G) / largest;
  X = X / std::sqrt(sum(X * X).item());
  for (int step = 0; step < steps; ++step) {
    const Tensor A = matmul(X, transpose(X));
    X = 3.4445 * X + matmul(-4.7750 * A + 2.0315 * matmul(A, A), X);
  }
  return is_tall ? transpose(X) : X;
}

Muon::Muon(std::vector<NamedTensor> parameters_to_train, const MuonOptions& options)
    : Adam("Muon", std::move(parameters_to_train),
           {options.learning_rate, options.beta1, options.beta2, options.eps, options.groups},
           WeightDecay{options.weight_decay, options.decays},
           [&](const NamedTensor& parameter) { return !options.matrices(parameter); }),
      momentum_(options.momentum),
      adam_lr_scale_(options.adam_lr_scale),
      nesterov_(options.nesterov),
      steps_(options.steps),
      velocity_(add_state("momentum", false, options.matrices)) {
  check_option("momentum", momentum_, 0, 1);
  check_option("adam_lr_scale", adam_lr_scale_, 0, std::numeric_limits<double>::infinity());
  if (steps_ < 1) fail<ValueError>("[Muon] steps is {}: it must be 1 or more", steps_);
  for (std::size_t i = 0; i < velocity_.size(); ++i) {
    if (velocity_[i].defined() && velocity_[i].rank() != 2) {
      fail<ShapeError>("[Muon] `matrices` selects '{}', shape {}, which is not a matrix",
                       parameters()[i].name, to_string(velocity_[i].shape()));
    }
  }
}

void Muon::update(std::size_t i, const Tensor& gradient) {
  Tensor& velocity = velocity_[i];
  if (!velocity.defined()) {
    Adam::update(i, gradient, rate_of(i) * adam_lr_scale_);
    return;
  }
  Tensor parameter = parameters()[i].tensor;
  dispatch(parameter.dtype(), [&]<class T>() {
    const T mu = static_cast<T>(momentum_);
    T* u = velocity.mutable_data<T>();
    const T* g = gradient.data<T>();
    detail::for_each_element(parameter.numel(), [=](std::int64_t j) { u[j] = mu * u[j] + g[j]; });
  });
  const Tensor direction =
      contiguous(orthogonalized(nesterov_ ? gradient + momentum_ * velocity : velocity, steps_));
  const auto rows = static_cast<double>(parameter.size(0)), columns = static_cast<double>(parameter.size(1));
  dispatch(parameter.dtype(), [&]<class T>() {
    const T rate = static_cast<T>(rate_of(i) * std::sqrt(std::max(1.0, columns / rows)));
    const T decay = static_cast<T>(decay_multiplier(i));
    T* p = parameter.mutable_data<T>();
    const T* d = direction.data<T>();
    detail::for_each_element(parameter.numel(), [=](std::int64_t j) { p[j] = decay * p[j] - rate * d[j]; });
  });
}

}  // namespace fovea
