#pragma once

#include <optional>

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/base/export.h"

namespace fovea {

/// While one of these lives, forward passes on this thread are training: dropout drops, with draws from the
/// scope's own generator. Without one they are deterministic evaluation, so no layer has a flag to forget.
///
/// Scopes nest; the innermost counts. One opened from the state of another goes on with the same draws: that
/// is how a forward pass is repeated (`training_state`), and a stopped run resumed.
/// Threads: a scope belongs to the thread that opened it.
class FOVEA_API Training {
 public:
  explicit Training(std::uint64_t seed) : Training(Rng(seed)) {}
  explicit Training(const Rng& rng);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// The generator that the scope's passes draw from: its state is what a checkpoint has to keep.
  const Rng& rng() const { return rng_; }
  Rng& rng() { return rng_; }

 private:
  Rng rng_;
  Training* before_;
};

/// While one of these lives, a Training scope around it is suspended: its forward passes are evaluation.
class FOVEA_API Inference {
 public:
  Inference();
  ~Inference();
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

 private:
  Training* before_;
};

/// Whether a Training scope is open on this thread and not suspended.
FOVEA_API bool training();

/// The state of the open scope's generator; nothing outside of one. A pass is repeated, dropout included, by
/// `Training(Rng(*state))` with the state from before it, or under Inference if there was none.
FOVEA_API std::optional<Rng::State> training_state();

namespace detail {
/// The next draw of the open scope. Call it only if `training()`.
std::uint64_t draw_key();
}  // namespace detail

}  // namespace fovea
