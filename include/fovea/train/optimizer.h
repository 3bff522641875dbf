#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/autograd/tensor.h"
#include "fovea/export.h"
#include "fovea/layers/visit.h"
#include "fovea/train/clip.h"

/// Optimizers: `AdamW optimizer(named_parameters(model), {.learning_rate = 3e-3})`, then after each
/// `backward` `optimizer.step()` and `optimizer.zero_grad()`.
namespace fovea {

/// What all optimizers share: parameters, a learning rate, and state kept under the parameters' names.
///
/// Ownership: it holds the same tensors as the layer it was made from, so it is made after the layer has its
/// final ones (after `to`, `clone` or `load`). `state(optimizer)` and `load(optimizer, state)` work as for a
/// layer. Threads: a step writes, so nothing may read the parameters meanwhile. Its bits do not depend on
/// `threads()`.
class FOVEA_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  // A copy would share the state, and step it twice.
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient, in place; the others, and their state, stay as they are. A
  /// graph that saved a parameter can't be used any more: its backward says so.
  void step();

  /// Drops all gradients, so that the next backward starts anew.
  void zero_grad();

  double learning_rate() const { return learning_rate_; }
  /// For the steps to come. Throws: ValueError if it is negative or not finite.
  void set_learning_rate(double rate);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }

  /// Its state as buffers: "blocks.0.W.momentum" beside the parameter "blocks.0.W".
  static void visit(const Optimizer& self, Visitor& v);

 protected:
  /// Throws: ValueError if there is no parameter, one comes twice or does not require a gradient, or for the
  /// rate.
  Optimizer(const char* name, std::vector<NamedTensor> parameters, double learning_rate);

  /// Gives every parameter a tensor of zeros, of its own shape or a scalar f64, under its name and this one.
  std::vector<Tensor> add_state(const std::string& name, bool scalar = false);

  /// Updates parameter i, whose gradient is row-major.
  virtual void update(std::size_t i, const Tensor& gradient) = 0;

  /// Throws ValueError unless low <= value < high.
  void check_option(const char* option, double value, double low, double high) const;

 private:
  const char* name_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> state_;
  double learning_rate_ = 0;
};

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;  ///< mu in [0, 1)
};

/// Stochastic gradient descent with momentum (Polyak 1964, as in Sutskever et al. 2013 without damping):
///   u <- mu u + g,  p <- p - rate u.
class FOVEA_API Sgd final : public Optimizer {
 public:
  /// Throws: ValueError for an option outside its range, or as Optimizer.
  explicit Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options = {});

 private:
  void update(std::size_t i, const Tensor& gradient) override;

  double momentum_;
  std::vector<Tensor> velocity_;  // empty without momentum
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;    ///< in [0, 1)
  double beta2 = 0.999;  ///< in [0, 1)
  double eps = 1e-8;     ///< 0 or more
};

/// Adam (Kingma & Ba 2015), at a parameter's t-th update:
///   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
///   p <- p - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).
class FOVEA_API Adam : public Optimizer {
 public:
  /// Throws: ValueError for an option outside its range, or as Optimizer.
  explicit Adam(std::vector<NamedTensor> parameters, const AdamOptions& options = {});

 protected:
  Adam(const char* name, std::vector<NamedTensor> parameters, const AdamOptions& options);
  void update(std::size_t i, const Tensor& gradient) override { update(i, gradient, 0); }
  void update(std::size_t i, const Tensor& gradient, double weight_decay);

 private:
  double beta1_, beta2_, eps_;
  std::vector<Tensor> m_, v_;
  std::vector<Tensor> updates_;  // t: a parameter without a gradient does not age
};

/// Matrices decay; gains and biases, which have one axis, do not.
FOVEA_API bool decays_by_default(const NamedTensor& parameter);

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;          ///< in [0, 1)
  double beta2 = 0.999;        ///< in [0, 1)
  double eps = 1e-8;           ///< 0 or more
  double weight_decay = 0.01;  ///< 0 or more
  std::function<bool(const NamedTensor&)> decays = decays_by_default;
};

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019): before Adam's update, p <- p (1 - rate
/// decay).
class FOVEA_API AdamW final : public Adam {
 public:
  /// Throws: ValueError for an option outside its range, or as Optimizer.
  explicit AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options = {});

  /// The names of the parameters that decay, and of those that do not.
  std::vector<std::string> decayed() const;
  std::vector<std::string> not_decayed() const;

 private:
  void update(std::size_t i, const Tensor& gradient) override;
  std::vector<std::string> names_where(bool decays) const;

  double weight_decay_;
  std::vector<bool> decays_;
};

}  // namespace fovea
