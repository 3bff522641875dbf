#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/loop/recipe.h"
#include "fovea/train/tokenizers/vocabulary.h"

namespace fovea {

/// A number that a model is judged by, beside its known right value.
struct Metric {
  std::string name;  ///< "answers right"
  double value = 0;
  double right = 0;    ///< what it would be at best, known beforehand
  double allowed = 0;  ///< how far below (or above) it may be
  enum class Better : std::uint8_t { higher, lower } better = Better::higher;
  enum class Unit : std::uint8_t { share, nats } unit = Unit::share;  ///< nats per token

  /// Whether the value is as good as the right one, or falls short of it by no more than `allowed`.
  bool reached() const {
    return better == Better::higher ? value >= right - allowed : value <= right + allowed;
  }
};

/// A toy problem with a known answer. Training draws instances at random, all but those that are held out;
/// scores are taken on held-out instances only.
///
/// Threads: a task is not changed once it is made; any number of threads may use it.
class FOVEA_API Task {
 public:
  virtual ~Task() = default;

  /// What is to be learned, in one line.
  virtual std::string_view summary() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  /// T of the longest input: the context that a model needs.
  virtual std::int64_t context() const = 0;
  /// The token before any text, and the one that ends it, where the task has them.
  virtual std::optional<std::int64_t> start() const { return std::nullopt; }
  virtual std::optional<std::int64_t> stop() const { return std::nullopt; }
  /// What reaches the right values, in minutes at most.
  virtual Recipe recipe() const = 0;

  /// Fresh instances to train on; targets that are not judged are `ignored_target`.
  /// Throws: ValueError if count < 1.
  virtual Batch sample_batch(std::int64_t count, Rng& rng) const = 0;
  /// The same of held-out instances.
  virtual Batch unseen_batch(std::int64_t count, Rng& rng) const = 0;

  /// Judges a model on held-out instances, without recording a graph.
  virtual std::vector<Metric> score(const LanguageModel& model, Rng& rng) const = 0;
};

/// The names of all tasks, in alphabetical order: each is a file in train/tasks/.
FOVEA_API std::vector<std::string> task_names();

/// Throws: ValueError for another name, which lists them.
FOVEA_API std::unique_ptr<Task> make_task(std::string_view name);

}  // namespace fovea
