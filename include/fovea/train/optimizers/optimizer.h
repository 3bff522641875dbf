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

/// Parameters, picked by their names, that are trained in their own way.
struct ParameterGroup {
  std::string pattern;  ///< of whole names, as `name_matches` reads it: "*.b", "blocks.?.attention.*"
  double lr_scale = 1;  ///< times the optimizer's learning rate; 0 or more
  /// For all of the group, whatever the optimizer's own rule says; 0 or more. Empty: as that rule says.
  std::optional<double> weight_decay = {};
};

/// Matrices decay; gains and biases, which have one axis, do not.
FOVEA_API bool decays_by_default(const NamedTensor& parameter);

/// What all optimizers share: parameters, a learning rate, groups, and state kept under the parameters'
/// names.
///
/// A parameter belongs to the first group whose pattern its name fits, or else to none. Weight decay is
/// decoupled (Loshchilov & Hutter 2019): before the update, p <- p (1 - rate decay).
///
/// Ownership: it holds the same tensors as the layer it was made from, so it is made after the layer has its
/// final ones (after `to`, `clone` or `load`). `state(optimizer)` and `load(optimizer, state)` work as for a
/// layer. Threads: a step writes, so nothing may read the parameters meanwhile. Its bits do not depend on
/// `threads()`.
class FOVEA_API Optimizer {
 public:
  /// How one parameter is trained.
  struct Settings {
    std::string group;        ///< the pattern of its group, or empty
    double lr_scale = 1;      ///< times `learning_rate()`
    double weight_decay = 0;  ///< 0: it does not decay
  };

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
  /// In the order of `parameters()`.
  const std::vector<Settings>& settings() const { return settings_; }

  /// The names of the parameters that decay, and of those that do not.
  std::vector<std::string> decayed() const { return names_where(true); }
  std::vector<std::string> not_decayed() const { return names_where(false); }

  /// Its state as buffers: "blocks.0.W.momentum" beside the parameter "blocks.0.W".
  static void visit(const Optimizer& self, Visitor& v);

 protected:
  struct WeightDecay {
    double amount = 0;
    std::function<bool(const NamedTensor&)> decays;
  };

  /// Without a weight decay, none of the groups may have one.
  /// Throws: ValueError if there is no parameter, one comes twice or does not require a gradient; for the
  /// rate; for a group that no parameter is in, or a number in it outside its range.
  Optimizer(const char* name, std::vector<NamedTensor> parameters, double learning_rate,
            const std::vector<ParameterGroup>& groups, const std::optional<WeightDecay>& decay = {});

  /// Gives every parameter, or those for which `has` is true, a tensor of zeros under its name and this one:
  /// of its own shape, or a scalar f64. The others get an undefined one.
  std::vector<Tensor> add_state(const std::string& name, bool scalar = false,
                                const std::function<bool(const NamedTensor&)>& has = {});

  /// Updates parameter i, whose gradient is row-major.
  virtual void update(std::size_t i, const Tensor& gradient) = 0;

  /// The learning rate of parameter i, and what is left of it by its weight decay at that rate.
  double rate_of(std::size_t i) const { return learning_rate_ * settings_[i].lr_scale; }
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

/// A line for each parameter, with its shape, elements, group, learning rate and weight decay, and at the end
/// how many decay and how many do not.
FOVEA_API std::string parameter_table(const Optimizer& optimizer);

struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;                      ///< mu in [0, 1)
  bool nesterov = false;                    ///< needs momentum
  std::vector<ParameterGroup> groups = {};  ///< without weight decay
};

/// Stochastic gradient descent with momentum (Polyak 1964), or Nesterov's as Sutskever et al. (2013) have it,
/// both without damping:
///   u <- mu u + g,  p <- p - rate u,  or with `nesterov`  p <- p - rate (g + mu u).
class FOVEA_API Sgd final : public Optimizer {
 public:
  /// Throws: ValueError for an option outside its range, Nesterov's without momentum, or as Optimizer.
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
  /// Throws: ValueError for an option outside its range, or as Optimizer.
  explicit Adam(std::vector<NamedTensor> parameters, const AdamOptions& options = {});

 protected:
  /// With state for those parameters only for which `updates` is true, if it is given.
  Adam(const char* name, std::vector<NamedTensor> parameters, const AdamOptions& options,
       const std::optional<WeightDecay>& decay, const std::function<bool(const NamedTensor&)>& updates = {});
  void update(std::size_t i, const Tensor& gradient) override { update(i, gradient, rate_of(i)); }
  void update(std::size_t i, const Tensor& gradient, double rate);

 private:
  double beta1_, beta2_, eps_;
  std::vector<Tensor> m_, v_;
  std::vector<Tensor> updates_;  // t: a parameter without a gradient does not age
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
  /// Throws: ValueError for an option outside its range, or as Optimizer.
  explicit AdamW(std::vector<NamedTensor> parameters, const AdamWOptions& options = {});
};

struct LionOptions {
  double learning_rate = 1e-4;  ///< the paper takes 3 to 10 times less than for AdamW,
  double beta1 = 0.9;           ///< in [0, 1)
  double beta2 = 0.99;          ///< in [0, 1)
  double weight_decay = 0;      ///< and as much more; 0 or more
  std::function<bool(const NamedTensor&)> decays = decays_by_default;
  std::vector<ParameterGroup> groups = {};
};

/// Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2): every element moves
/// by the rate.
///   p <- p - rate sign(beta1 m + (1 - beta1) g),  m <- beta2 m + (1 - beta2) g.
class FOVEA_API Lion final : public Optimizer {
 public:
  /// Throws: ValueError for an option outside its range, or as Optimizer.
  explicit Lion(std::vector<NamedTensor> parameters, const LionOptions& options = {});

 private:
  void update(std::size_t i, const Tensor& gradient) override;

  double beta1_, beta2_;
  std::vector<Tensor> momentum_;
};

/// Muon takes what has two axes. Embeddings and output layers do better with Adam, so leave them out where a
/// model has them: `[](const NamedTensor& p) { return p.tensor.rank() == 2 && p.name != "embedding.table";
/// }`.
FOVEA_API bool is_matrix(const NamedTensor& parameter);

struct MuonOptions {
  double learning_rate = 0.02;  ///< of matrices
  double momentum = 0.95;       ///< mu in [0, 1)
  bool nesterov = true;
  int steps = 5;                    ///< of Newton and Schulz's iteration, 1 or more
  double adam_rate_factor = 0.015;  ///< the learning rate of the rest is this times that of matrices
  double beta1 = 0.9;               ///< of the rest, as in AdamW
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;  ///< 0 or more
  std::function<bool(const NamedTensor&)> decays = decays_by_default;
  std::function<bool(const NamedTensor&)> matrices = is_matrix;  ///< true for two axes only
  std::vector<ParameterGroup> groups = {};
};

/// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): momentum whose singular values are made
/// equal.
///   u <- mu u + g,  p <- p - rate sqrt(max(1, columns / rows)) orthogonalized(g + mu u),
/// or of u without `nesterov`. Columns are outputs, as in y = x W. What is no matrix is trained by AdamW.
class FOVEA_API Muon final : public Adam {
 public:
  /// Throws: ValueError for an option outside its range, or as Optimizer; ShapeError if `matrices` is true
  /// for a parameter that has not two axes.
  explicit Muon(std::vector<NamedTensor> parameters, const MuonOptions& options = {});

 private:
  void update(std::size_t i, const Tensor& gradient) override;

  double momentum_, adam_rate_factor_;
  bool nesterov_;
  int steps_;
  std::vector<Tensor> velocity_;  // undefined for what is no matrix
};

/// A matrix with the singular vectors of G and singular values near 1: with 5 steps between 0.68 and 1.14,
/// where those of G are not below a hundredth of its norm. Newton and Schulz's iteration with Jordan's
/// coefficients, which do not converge but take small values up quickly:
///   X <- G / |G|,  then `steps` times  X <- a X + (b A + c A A) X,  A = X X^T,
///   with a, b, c = 3.4445, -4.7750, 2.0315.
/// Zeros stay zeros. Outside the graph. Shapes: (M, N) -> (M, N). Throws: ShapeError for another rank.
FOVEA_API Tensor orthogonalized(const Tensor& G, int steps = 5);

}  // namespace fovea
