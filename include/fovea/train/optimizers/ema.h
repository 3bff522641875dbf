#pragma once

#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/tensor/named_tensor.h"
#include "fovea/layers/visit.h"

namespace fovea {

/// An exponential moving average of a model's weights (Polyak & Juditsky 1992; Tarvainen & Valpola 2017),
/// which often does better on held-out data than the weights themselves:
///   a <- decay a + (1 - decay) p  at each `update`, from a = p at first.
///
///   Ema average(named_parameters(model), 0.999);
///   optimizer.step(); average.update();                       // in the loop
///   { const AveragedWeights scope(average); evaluate(model); }   // with the averages in the model
///   auto averaged = clone(model); average.copy_to(named_parameters(averaged));
///
/// Ownership and threads: as an Optimizer. `state(average)` and `load(average, state)` work as for a layer.
class FOVEA_API Ema {
 public:
  /// Throws: ValueError if there is no parameter, two have one name, or decay is not in [0, 1).
  Ema(std::vector<NamedTensor> parameters, double decay);
  // A copy would share the averages, so that an update of both would move them twice.
  Ema(const Ema&) = delete;
  Ema& operator=(const Ema&) = delete;

  /// Moves the averages towards the weights. Throws: ValueError while both are swapped.
  void update();

  /// Exchanges the values of weights and averages. A second call restores both.
  void swap();
  bool swapped() const { return swapped_; }

  /// Writes the averages into parameters of the same names and shapes, such as those of a clone, converted to
  /// their dtype. Throws: ValueError if a name or shape differs, before anything is written, or while weights
  /// and averages are swapped.
  void copy_to(const std::vector<NamedTensor>& parameters) const;

  /// The averages as buffers: "blocks.0.W.average" beside the parameter "blocks.0.W".
  /// Throws: ValueError while weights and averages are swapped.
  static void visit(const Ema& self, Visitor& v);

 private:
  void check_not_swapped(const char* function) const;

  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> averages_;  // row-major, named as in the state
  double decay_;
  bool swapped_ = false;
};

/// While it lives, the model has its averaged weights: it swaps at its beginning and at its end.
class AveragedWeights {
 public:
  explicit AveragedWeights(Ema& average) : average_(average) { average_.swap(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;
  ~AveragedWeights() { average_.swap(); }

 private:
  Ema& average_;
};

}  // namespace fovea
