#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/loop/recipe.h"
#include "fovea/train/tasks/task.h"
#include "fovea/train/tokenizers/vocabulary.h"

namespace fovea {

/// A question and its only right answer, as ids.
struct PromptAnswer {
  std::vector<std::int64_t> prompt;
  std::vector<std::int64_t> answer;
};

/// A task whose instances are random prompts, each followed by the answer that it determines. An instance has
/// one such pair or several, and a later prompt may build on earlier pairs. A model reads the whole instance
/// as one sequence, and is judged on the answers alone.
///
/// The metric is the share of held-out instances of which greedy generation gets every answer right: each
/// token of each answer is the likeliest one after the right tokens before it.
class FOVEA_API AnswerTask final : public Task {
 public:
  struct Definition {
    std::string summary;
    Vocabulary vocabulary;
    /// Draws an instance. Its prompts and answers have the same lengths each time.
    std::function<std::vector<PromptAnswer>(Rng& rng)> instance;
    double held_out = 0.125;               ///< the share of all instances that training never sees
    std::string metric = "answers right";  ///< the metric's name; its best possible value is 1
    double allowed = 0.01;                 ///< how far below 1 the metric may be
    Recipe recipe = {};
  };

  /// Throws: ValueError if an instance has no pair, an empty prompt or an empty answer, or if `held_out` is
  /// outside (0, 1).
  explicit AnswerTask(Definition definition);

  std::string_view summary() const override { return definition_.summary; }
  const Vocabulary& vocabulary() const override { return definition_.vocabulary; }
  std::int64_t context() const override { return std::ssize(judged_) - 1; }
  Recipe recipe() const override { return definition_.recipe; }

  /// Throws: also ValueError if an instance has other lengths than those before.
  Batch sample_batch(std::int64_t count, Rng& rng) const override;
  Batch unseen_batch(std::int64_t count, Rng& rng) const override;

  std::vector<Metric> score(const LanguageModel& model, Rng& rng) const override;
  /// The answer that the model gives to a held-out prompt by greedy generation.
  std::vector<Exhibit> exhibits(const TrainedModel& model, Rng& rng) const override;

 private:
  Definition definition_;
  std::vector<bool> judged_;  // for each id of an instance, whether it belongs to an answer
};

}  // namespace fovea
