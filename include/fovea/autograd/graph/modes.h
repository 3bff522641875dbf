#pragma once

#include <cstdint>
#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/base/scoped_value.h"

/// Modes of a thread, each set by a scope: whether ops are recorded, whether their values are checked, and
/// whether forward passes are training. Scopes nest, and the innermost of a kind counts. A scope belongs to
/// the thread that opened it.
namespace fovea {

/// While one of these lives, no op on this thread is recorded, but by what makes a graph of its own:
/// `hessian` and the other derivatives, `gradcheck`.
class FOVEA_API NoGrad {
 public:
  NoGrad();

 private:
  detail::ScopedValue<bool> recording_;
};

/// Whether ops on this thread record: true by default, false inside NoGrad and, within a rule, unless the
/// gradient itself is being differentiated. A rule with a fused kernel uses it only when this is false.
FOVEA_API bool recording();

/// While one of these lives, the first op on this thread whose value or gradient turns non-finite throws
/// NonFiniteError with its name, shape and position. A NaN among an op's inputs is reported at its first use;
/// an infinity among them, as in a mask, is not. Costs a pass over every value.
class FOVEA_API Anomaly {
 public:
  Anomaly();

 private:
  detail::ScopedValue<bool> anomaly_;
};

/// While one of these lives, forward passes on this thread are training: dropout drops, with draws from the
/// scope's own generator. Without one they are deterministic evaluation, so no layer has a flag to forget.
///
/// A scope opened from the state of another continues the same draws: that is how a forward pass is repeated
/// (`training_state`), and a stopped run resumed.
class FOVEA_API TrainMode {
 public:
  explicit TrainMode(std::uint64_t seed) : TrainMode(Rng(seed)) {}
  explicit TrainMode(const Rng& rng);

  /// The generator that the scope's passes draw from: its state is what a checkpoint has to keep.
  const Rng& rng() const { return rng_; }
  Rng& rng() { return rng_; }

 private:
  Rng rng_;
  detail::ScopedValue<TrainMode*> scope_;
};

/// While one of these lives, a TrainMode scope around it is suspended: forward passes are evaluation.
class FOVEA_API EvalMode {
 public:
  EvalMode();

 private:
  detail::ScopedValue<TrainMode*> scope_;
};

/// Whether a TrainMode scope is open on this thread and not suspended.
FOVEA_API bool training();

/// The state of the open scope's generator; nothing outside of one. A pass is repeated, dropout included, by
/// `TrainMode(Rng(*state))` with the state from before it, or under EvalMode if there was none.
FOVEA_API std::optional<Rng::State> training_state();

}  // namespace fovea
