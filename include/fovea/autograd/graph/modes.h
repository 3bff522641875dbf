#pragma once

#include <optional>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"

namespace fovea {

/// While one of these lives, forward passes on this thread are training: dropout drops, with draws from the
/// scope's own generator. Without one they are deterministic evaluation, so no layer has a flag to forget.
///
/// Scopes nest; the innermost counts. One opened from the state of another goes on with the same draws: that
/// is how a forward pass is repeated (`training_state`), and a stopped run resumed.
/// Threads: a scope belongs to the thread that opened it.
class FOVEA_API TrainMode {
 public:
  explicit TrainMode(std::uint64_t seed) : TrainMode(Rng(seed)) {}
  explicit TrainMode(const Rng& rng);
  ~TrainMode();
  TrainMode(const TrainMode&) = delete;
  TrainMode& operator=(const TrainMode&) = delete;

  /// The generator that the scope's passes draw from: its state is what a checkpoint has to keep.
  const Rng& rng() const { return rng_; }
  Rng& rng() { return rng_; }

 private:
  Rng rng_;
  TrainMode* before_;
};

/// While one of these lives, a TrainMode scope around it is suspended: its forward passes are evaluation.
class FOVEA_API EvalMode {
 public:
  EvalMode();
  ~EvalMode();
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  TrainMode* before_;
};

/// Whether a TrainMode scope is open on this thread and not suspended.
FOVEA_API bool training();

/// The state of the open scope's generator; nothing outside of one. A pass is repeated, dropout included, by
/// `TrainMode(Rng(*state))` with the state from before it, or under EvalMode if there was none.
FOVEA_API std::optional<Rng::State> training_state();

namespace detail {
/// The next draw of the open scope. Call it only if `training()`.
std::uint64_t draw_key();
}  // namespace detail

}  // namespace fovea
