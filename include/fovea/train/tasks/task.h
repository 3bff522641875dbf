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

/// A number that judges a model, beside the best possible value, which is known beforehand.
struct Metric {
  enum class Better : std::uint8_t { higher, lower };
  enum class Unit : std::uint8_t { share, nats };  ///< a share of 1, or nats per token

  std::string name;  ///< "answers right"
  double value = 0;
  double right = 0;    ///< the best possible value
  double allowed = 0;  ///< how far from `right` the value of a model that has learned the task may be
  Better better = Better::higher;
  Unit unit = Unit::share;
  std::string note = {};  ///< for people, what the value may be compared with: "a bigram model reaches 1.8"

  /// The least value that counts as learned, or the largest where lower is better.
  double limit() const { return better == Better::higher ? right - allowed : right + allowed; }
  /// Whether the value is as good as the limit; NaN never is.
  bool reached() const { return better == Better::higher ? value >= limit() : value <= limit(); }
};

/// A trained model as a task examines it.
struct TrainedModel {
  LanguageModel logits;  ///< ids (B, T) -> (B, T, V)
  /// The attention weights of every layer, first to last: ids (B, T) -> one (B, H, T, T) each.
  std::function<std::vector<Tensor>(const Indices& ids)> attention;
};

/// Something worth seeing of a trained model. It is plain data; whoever asked for it draws it.
struct Exhibit {
  std::string text = {};                ///< what is shown, in a sentence or two
  std::vector<std::string> words = {};  ///< the T words of an input
  Tensor weights = {};                  ///< (T,): the attention that one query pays to each of these words
};

/// A toy problem with a known answer. An instance is one example of it: a sequence of tokens. Training draws
/// instances at random, except a share of all that is held out; scores are taken on held-out instances only.
///
/// Threads: a task does not change once it is made; any number of threads may use it.
class FOVEA_API Task {
 public:
  virtual ~Task() = default;

  /// What a model is to learn, in one line.
  virtual std::string_view summary() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  /// T of the longest input: the context that a model needs.
  virtual std::int64_t context() const = 0;
  /// The token that stands before any text, if the task has one.
  virtual std::optional<std::int64_t> start() const { return std::nullopt; }
  /// The token that ends a text, if the task has one.
  virtual std::optional<std::int64_t> stop() const { return std::nullopt; }
  /// A model and its training that learn the task in minutes at most.
  virtual Recipe recipe() const = 0;

  /// Draws instances to train on. Targets that are not judged are `ignored_target`.
  /// Throws: ValueError if count < 1.
  virtual Batch sample_batch(std::int64_t count, Rng& rng) const = 0;
  /// Draws held-out instances. Throws: as `sample_batch`.
  virtual Batch unseen_batch(std::int64_t count, Rng& rng) const = 0;

  /// Judges a model on held-out instances, without recording a graph.
  /// Throws: ShapeError if the model's logits are not (B, T, V); NonFiniteError if one is NaN or +infinity.
  virtual std::vector<Metric> score(const LanguageModel& model, Rng& rng) const = 0;
  /// What else is worth seeing of a trained model: what it answers, or where it looks.
  virtual std::vector<Exhibit> exhibits(const TrainedModel& /*model*/, Rng& /*rng*/) const { return {}; }
};

/// The names of all tasks, in alphabetical order. Each is a file in train/tasks/.
FOVEA_API std::vector<std::string> task_names();

/// The task of that name. Throws: ValueError, which lists all names, if there is none.
FOVEA_API std::unique_ptr<Task> make_task(std::string_view name);

}  // namespace fovea
