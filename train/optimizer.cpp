#include "fovea/train/optimizer.h"

#include <cmath>
#include <limits>
#include <set>

#include "autograd/fail.h"
#include "autograd/kernels/parallel.h"
#include "fovea/autograd/ops.h"

namespace fovea {
namespace {

constexpr std::int64_t update_chunk = 1 << 14;
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
void sgd_kernel(std::int64_t n, T* p, const T* g, T rate) {
  kernels::parallel_for(n, update_chunk, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) p[i] -= rate * g[i];
  });
}

template <class T>
void momentum_kernel(std::int64_t n, T* p, T* u, const T* g, T rate, T momentum) {
  kernels::parallel_for(n, update_chunk, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      u[i] = momentum * u[i] + g[i];
      p[i] -= rate * u[i];
    }
  });
}

// The scalars of an Adam update, the same for all elements.
template <class T>
struct AdamScalars {
  T beta1, rest1;  // rest1 = 1 - beta1, rounded once
  T beta2, rest2;
  T rate;        // divided by 1 - beta1^t
  T root_scale;  // 1 / sqrt(1 - beta2^t)
  T eps;
  T kept;  // 1 - rate * decay
};

template <class T>
void adam_kernel(std::int64_t n, T* p, T* m, T* v, const T* g, const AdamScalars<T>& s) {
  kernels::parallel_for(n, update_chunk, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      m[i] = s.beta1 * m[i] + s.rest1 * g[i];
      v[i] = s.beta2 * v[i] + s.rest2 * g[i] * g[i];
      p[i] = s.kept * p[i] - s.rate * m[i] / (std::sqrt(v[i]) * s.root_scale + s.eps);
    }
  });
}

}  // namespace

Optimizer::Optimizer(const char* name, std::vector<NamedTensor> parameters, double learning_rate)
    : name_(name), parameters_(std::move(parameters)) {
  if (parameters_.empty()) {
    fail<ValueError>("[{}] there are no parameters: does the layer's `visit` name any?", name_);
  }
  std::set<const detail::TensorImpl*> seen;
  for (const auto& [parameter, tensor] : parameters_) {
    if (!tensor.requires_grad()) {
      fail<ValueError>(
          "[{}] '{}', shape {}, does not require a gradient: make it with parameter(...), declare it "
          "v.frozen in its layer's `visit`, or take it out of the list",
          name_, parameter, to_string(tensor.shape()));
    }
    if (!tensor.is_contiguous()) {
      fail<ValueError>("[{}] '{}', shape {}, is not in row-major order: make it with parameter(...)", name_,
                       parameter, to_string(tensor.shape()));
    }
    if (!seen.insert(tensor.impl()).second) {
      fail<ValueError>("[{}] '{}' is in the list twice, and would be updated twice", name_, parameter);
    }
  }
  set_learning_rate(learning_rate);
}

void Optimizer::step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = parameters_[i].tensor.grad();
    if (gradient.defined()) update(i, contiguous(gradient.detach()));
  }
}

void Optimizer::zero_grad() {
  for (const NamedTensor& parameter : parameters_) parameter.tensor.set_grad({});
}

void Optimizer::set_learning_rate(double rate) {
  check_option("learning_rate", rate, 0, infinity);
  learning_rate_ = rate;
}

void Optimizer::visit(const Optimizer& self, Visitor& v) {
  for (const auto& [name, tensor] : self.state_) v.buffer(name, tensor);
}

std::vector<Tensor> Optimizer::add_state(const std::string& name, bool scalar) {
  std::vector<Tensor> added;
  for (const auto& [parameter, tensor] : parameters_) {
    added.push_back(scalar ? zeros({}, f64) : zeros(tensor.shape(), tensor.dtype()));
    state_.push_back({fmt::format("{}.{}", parameter, name), added.back()});
  }
  return added;
}

void Optimizer::check_option(const char* option, double value, double low, double high) const {
  if (value >= low && value < high) return;
  fail<ValueError>("[{}] {} is {}: it must be at least {} and below {}", name_, option, value, low, high);
}

Sgd::Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
    : Optimizer("Sgd", std::move(parameters), options.learning_rate), momentum_(options.momentum) {
  check_option("momentum", momentum_, 0, 1);
  if (momentum_ > 0) velocity_ = add_state("momentum");
}

void Sgd::update(std::size_t i, const Tensor& gradient) {
  Tensor p = parameters()[i].tensor;
  dispatch(p.dtype(), [&]<class T>() {
    const T rate = static_cast<T>(learning_rate());
    if (velocity_.empty()) {
      sgd_kernel(p.numel(), p.mutable_data<T>(), gradient.data<T>(), rate);
    } else {
      momentum_kernel(p.numel(), p.mutable_data<T>(), velocity_[i].mutable_data<T>(), gradient.data<T>(),
                      rate, static_cast<T>(momentum_));
    }
  });
}

Adam::Adam(std::vector<NamedTensor> parameters, const AdamOptions& options)
    : Adam("Adam", std::move(parameters), options) {}

Adam::Adam(const char* name, std::vector<NamedTensor> parameters, const AdamOptions& options)
    : Optimizer(name, std::move(parameters), options.learning_rate),
      beta1_(options.beta1),
      beta2_(options.beta2),
      eps_(options.eps),
      m_(add_state("m")),
      v_(add_state("v")),
      updates_(add_state("updates", true)) {
  check_option("beta1", beta1_, 0, 1);
  check_option("beta2", beta2_, 0, 1);
  check_option("eps", eps_, 0, infinity);
}

void Adam::update(std::size_t i, const Tensor& gradient, double weight_decay) {
  Tensor p = parameters()[i].tensor;
  const double t = *updates_[i].mutable_data<double>() += 1;
  dispatch(p.dtype(), [&]<class T>() {
    const AdamScalars<T> scalars{
        .beta1 = static_cast<T>(beta1_),
        .rest1 = static_cast<T>(1 - beta1_),
        .beta2 = static_cast<T>(beta2_),
        .rest2 = static_cast<T>(1 - beta2_),
        .rate = static_cast<T>(learning_rate() / (1 - std::pow(beta1_, t))),
        .root_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, t))),
        .eps = static_cast<T>(eps_),
        .kept = static_cast<T>(1 - learning_rate() * weight_decay),
    };
    adam_kernel(p.numel(), p.mutable_data<T>(), m_[i].mutable_data<T>(), v_[i].mutable_data<T>(),
                gradient.data<T>(), scalars);
  });
}

bool decays_by_default(const NamedTensor& parameter) { return parameter.tensor.rank() >= 2; }

AdamW::AdamW(std::vector<NamedTensor> parameters_to_train, const AdamWOptions& options)
    : Adam("AdamW", std::move(parameters_to_train),
           {options.learning_rate, options.beta1, options.beta2, options.eps}),
      weight_decay_(options.weight_decay) {
  check_option("weight_decay", weight_decay_, 0, infinity);
  for (const NamedTensor& parameter : parameters()) decays_.push_back(options.decays(parameter));
}

void AdamW::update(std::size_t i, const Tensor& gradient) {
  Adam::update(i, gradient, decays_[i] ? weight_decay_ : 0);
}

std::vector<std::string> AdamW::names_where(bool decays) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < decays_.size(); ++i) {
    if (decays_[i] == decays) names.push_back(parameters()[i].name);
  }
  return names;
}

std::vector<std::string> AdamW::decayed() const { return names_where(true); }
std::vector<std::string> AdamW::not_decayed() const { return names_where(false); }

}  // namespace fovea
