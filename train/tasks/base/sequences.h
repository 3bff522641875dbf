#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/tasks/task.h"

/// What tasks share whose instances are sequences of one length.
namespace fovea::detail {

using Ids = std::vector<std::int64_t>;

/// A source of instances, a share of which is held out.
struct Sequences {
  std::function<Ids(Rng& rng)> draw;  ///< draws an instance, held out or not
  std::vector<bool> judged = {};      ///< for each id of an instance, whether it is judged; empty: all are
  double held_out = 0.125;            ///< the share of all instances that is held out

  /// Throws: ValueError if count < 1.
  Batch training_batch(std::int64_t count, Rng& rng) const { return batch(count, false, rng); }
  /// Throws: ValueError if count < 1.
  Batch unseen_batch(std::int64_t count, Rng& rng) const { return batch(count, true, rng); }

 private:
  Batch batch(std::int64_t count, bool unseen, Rng& rng) const;
};

/// A model's logits (B, T, V) for ids (B, T), in f64 and outside any graph.
/// Throws: ShapeError if they have another shape; NonFiniteError if one is NaN or +infinity.
Tensor ask(const LanguageModel& model, const Indices& ids, std::int64_t vocabulary);

}  // namespace fovea::detail
