#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/layers/name_matches.h"
#include "fovea/layers/visit.h"
#include "fovea/train/optimizers/clip.h"

/// Optimizers: `AdamW optimizer(named_parameters(model), {.learning_rate = 3e-3})`, then after each
/// `backward` `optimizer.step()` and `optimizer.zero_grad()`.
namespace fovea {

/// Parameters, selected by name, that have a learning rate or weight decay of their own.
struct ParameterGroup {
  std::string pattern;  ///< matched against whole names by `name_matches`: "*.b", "blocks.?.attention.*"
  double lr_scale = 1;  ///< multiplies the optimizer's learning rate; 0 or more
  /// The weight decay of all parameters in the group; 0 or more. Empty: the optimizer's own, for those of
  /// its parameters that decay.
  std::optional<double> weight_decay = {};
};

/// True for parameters with two or more axes: matrices decay, gains and biases do not.
FOVEA_API bool decays_by_default(const NamedTensor& parameter);

/// The base of all optimizers: parameters, a learning rate, groups, and state named after the parameters.
///
/// A parameter belongs to the first group whose pattern matches its name, if any does. Weight decay is
/// decoupled (Loshchilov & Hutter 2019): before the update, p <- p (1 - rate decay).
///
/// Ownership: the optimizer shares the tensors of the layer it was made from, so make it after `to` and
/// `clone`, which give the layer new tensors. `state(optimizer)` and `load(optimizer, state)` work as for a
/// layer. Threads: a step writes the parameters, so nothing else may read them meanwhile. Its results do not
/// depend on `threads()`.
class FOVEA_API Optimizer {
 public:
  /// How one parameter is trained.
  struct Settings {
    std::string group;        ///< the pattern of its group; empty if it is in none
    double lr_scale = 1;      ///< multiplies `learning_rate()`
    double weight_decay = 0;  ///< 0 if the parameter does not decay
  };

  virtual ~Optimizer() = default;
  // A copy would share the state, so that a step of both would advance it twice.
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient, in place. The others and their state stay as they are. The
  /// backward of a graph that saved a parameter before the step throws.
  void step();

  /// Drops all gradients, so that the next backward does not add to them.
  void zero_grad();

  double learning_rate() const { return learning_rate_; }
  /// Sets the rate of the following steps. Throws: ValueError if it is negative or not finite.
  void set_learning_rate(double rate);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  /// In the order of `parameters()`.
  const std::vector<Settings>& settings() const { return settings_; }

  /// The names of the parameters that decay, and of those that do not.
  std::vector<std::string> decayed() const { return names_where(true); }
  std::vector<std::string> not_decayed() const { return names_where(false); }

  /// Names the state as buffers: "blocks.0.W.momentum" for the parameter "blocks.0.W".
  static void visit(const Optimizer& self, Visitor& v);

 protected:
  struct WeightDecay {
    double amount = 0;
    std::function<bool(const NamedTensor&)> decays;
  };

  /// `decay` is empty for an optimizer that does not support weight decay; groups may then have none.
  /// Throws: ValueError if there is no parameter, if one comes twice or does not require a gradient, if a
  /// group has no parameter, or for a number outside its range.
  Optimizer(const char* name, std::vector<NamedTensor> parameters, double learning_rate,
            const std::vector<ParameterGroup>& groups, const std::optional<WeightDecay>& decay = {});

  /// Adds a state of this name to every parameter, or to those for which `has` is true, and returns it: zeros
  /// of the parameter's shape, or, if `scalar` is set, an f64 scalar of zero. Parameters without the state
  /// get an undefined tensor.
  std::vector<Tensor> add_state(const std::string& name, bool scalar = false,
                                const std::function<bool(const NamedTensor&)>& has = {});

  /// Updates parameter i, whose gradient is row-major.
  virtual void update(std::size_t i, const Tensor& gradient) = 0;

  /// The learning rate of parameter i.
  double rate_of(std::size_t i) const { return learning_rate_ * settings_[i].lr_scale; }
  /// The factor by which weight decay multiplies parameter i in one step.
  double decay_multiplier(std::size_t i) const { return 1 - rate_of(i) * settings_[i].weight_decay; }

  /// Throws ValueError unless low <= value < high.
  void check_option(const char* option, double value, double low, double high) const;

 private:
  void check_parameters() const;
  void join_groups(const std::vector<ParameterGroup>& groups, bool may_decay);
  std::vector<std::string> names_where(bool decays) const;

  const char* name_;
  std::vector<NamedTensor> parameters_;
  std::vector<Settings> settings_;
  std::vector<NamedTensor> state_;
  double learning_rate_ = 0;
};

/// A table with a line for each parameter (shape, elements, group, learning rate and weight decay), and a
/// last line that counts the parameters that decay and those that do not.
FOVEA_API std::string parameter_table(const Optimizer& optimizer);

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;                      ///< mu, in [0, 1)
  bool nesterov = false;                    ///< needs a momentum above 0
  std::vector<ParameterGroup> groups = {};  ///< without weight decay
};

/// Stochastic gradient descent with momentum (Polyak 1964), or with Nesterov momentum in the form of
/// Sutskever et al. (2013), both without damping:
///   u <- mu u + g,  p <- p - rate u,  or with `nesterov`  p <- p - rate (g + mu u).
class FOVEA_API Sgd final : public Optimizer {
 public:
  /// Throws: ValueError for an option outside its range or for nesterov without momentum; as Optimizer.
  explicit Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options = {});

 private:
  void update(std::size_t i, const Tensor& gradient) override;

  double momentum_;
  bool nesterov_;
  std::vector<Tensor> velocity_;  // empty without momentum
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;                       ///< in [0, 1)
  double beta2 = 0.999;                     ///< in [0, 1)
  double eps = 1e-8;                        ///< 0 or more
  std::vector<ParameterGroup> groups = {};  ///< without weight decay
};

/// Adam (Kingma & Ba 2015), at a parameter's t-th update:
///   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
///   p <- p - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).
class FOVEA_API Adam : public Optimizer {
 public:
  /// Throws: ValueError for an option outside its range; as Optimizer.
  explicit Adam(std::vector<NamedTensor> parameters, const AdamOptions& options = {});

 protected:
  /// For optimizers that build on Adam. If `uses_adam` is given, only the parameters for which it is true get
  /// Adam's state.
  Adam(const char* name, std::vector<NamedTensor> parameters, const AdamOptions& options,
       const std::optional<WeightDecay>& decay,
       const std::function<bool(const NamedTensor&)>& uses_adam = {});
  void update(std::size_t i, const Tensor& gradient) override { update(i, gradient, rate_of(i)); }
  void update(std::size_t i, const Tensor& gradient, double rate);

 private:
  double beta1_, beta2_, eps_;
  std::vector<Tensor> m_, v_;
  std::vector<Tensor> updates_;  // t, counted for each parameter, because some may have no gradient in a step
};

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;          ///< in [0, 1)
  double beta2 = 0.999;        ///< in [0, 1)
  double eps = 1e-8;           ///< 0 or more
  double weight_decay = 0.01;  ///< 0 or more
  std::function<bool(const NamedTensor&)> decays = decays_by_default;
  std::vector<ParameterGroup> groups = {};
};

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019).
class FOVEA_API AdamW final : public Adam {
 public:
  /// Throws: ValueError for an option outside its range; as Optimizer.
  explicit AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options = {});
};

struct LionOptions {
  double learning_rate = 1e-4;  ///< the paper advises 3 to 10 times less than for AdamW
  double beta1 = 0.9;           ///< in [0, 1)
  double beta2 = 0.99;          ///< in [0, 1)
  double weight_decay = 0;      ///< 0 or more; the paper advises 3 to 10 times more than for AdamW
  std::function<bool(const NamedTensor&)> decays = decays_by_default;
  std::vector<ParameterGroup> groups = {};
};

/// Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2), which moves every
/// element by the learning rate:
///   p <- p - rate sign(beta1 m + (1 - beta1) g),  m <- beta2 m + (1 - beta2) g.
class FOVEA_API Lion final : public Optimizer {
 public:
  /// Throws: ValueError for an option outside its range; as Optimizer.
  explicit Lion(std::vector<NamedTensor> parameters, const LionOptions& options = {});

 private:
  void update(std::size_t i, const Tensor& gradient) override;

  double beta1_, beta2_;
  std::vector<Tensor> momentum_;
};

/// True for parameters with two axes. Embeddings and output layers train better with Adam, so exclude them:
///   [](const NamedTensor& p) { return is_matrix(p) && !name_matches("*.table", p.name); }
FOVEA_API bool is_matrix(const NamedTensor& parameter);

struct MuonOptions {
  double learning_rate = 0.02;  ///< of the matrices
  double momentum = 0.95;       ///< mu, in [0, 1)
  bool nesterov = true;
  int steps = 5;                 ///< of the Newton-Schulz iteration; 1 or more
  double adam_lr_scale = 0.015;  ///< learning rate of other parameters, as a multiple of the matrices'
  double beta1 = 0.9;            ///< for the other parameters, as in AdamW
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;  ///< 0 or more
  std::function<bool(const NamedTensor&)> decays = decays_by_default;
  /// Selects the parameters that Muon trains; all others are trained by AdamW.
  std::function<bool(const NamedTensor&)> matrices = is_matrix;
  std::vector<ParameterGroup> groups = {};
};

/// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), whose update of a matrix is its momentum
/// with all singular values made nearly equal:
///   u <- mu u + g,  p <- p - rate sqrt(max(1, columns / rows)) orthogonalized(g + mu u),
/// or orthogonalized(u) without `nesterov`. The columns of a matrix are its outputs, as in y = x W.
class FOVEA_API Muon final : public Adam {
 public:
  /// Throws: ValueError for an option outside its range; ShapeError if `matrices` selects a parameter that
  /// does not have two axes; as Optimizer.
  explicit Muon(std::vector<NamedTensor> parameters, const MuonOptions& options = {});

 private:
  void update(std::size_t i, const Tensor& gradient) override;

  double momentum_, adam_lr_scale_;
  bool nesterov_;
  int steps_;
  std::vector<Tensor> velocity_;  // undefined for parameters trained by AdamW
};

/// A matrix with the singular vectors of G and singular values near 1. After 5 steps, singular values of G
/// above a hundredth of its norm have become values between 0.68 and 1.14. This is the Newton-Schulz
/// iteration with Jordan's coefficients, which do not converge to 1 but raise small values quickly:
///   X <- G / |G|,  then `steps` times  X <- a X + (b A + c A A) X,  A = X X^T,
///   with a, b, c = 3.4445, -4.7750, 2.0315.
/// A matrix of zeros stays zero. The result is not part of the graph.
/// Shapes: (M, N) -> (M, N). Throws: ShapeError for another rank.
FOVEA_API Tensor orthogonalized(const Tensor& G, int steps = 5);

}  // namespace fovea
