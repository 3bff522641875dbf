#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/autograd/rng.h"
#include "fovea/export.h"
#include "fovea/train/batch.h"
#include "fovea/train/recipe.h"
#include "fovea/train/task.h"
#include "fovea/train/vocabulary.h"

namespace fovea {

/// What is asked, and the one answer that is right.
struct Instance {
  std::vector<std::int64_t> prompt;
  std::vector<std::int64_t> answer;
};

/// A task with a prompt, chosen at random, and an answer that follows from it. A model reads one after the
/// other, as a text, and is judged on the answer alone.
///
/// The measure is the share of held-out instances of which each token of the answer is the likeliest after
/// the prompt and the right tokens before it. This is how often greedy generation says the whole answer.
class FOVEA_API AnswerTask final : public Task {
 public:
  struct Definition {
    std::string summary;
    Vocabulary vocabulary;
    /// Draws one; prompts have the same length each time, and so have answers.
    std::function<Instance(Rng& rng)> instance;
    double held_out = 0.125;                ///< the share of instances that training never sees
    std::string measure = "answers right";  ///< the name of the share that is at best 1
    double allowed = 0.01;                  ///< how far below 1 that may be
    Recipe recipe = {};
  };

  /// Throws: ValueError for an instance without a prompt or an answer, or a share outside (0, 1).
  explicit AnswerTask(Definition definition);

  std::string_view summary() const override { return definition_.summary; }
  const Vocabulary& vocabulary() const override { return definition_.vocabulary; }
  std::int64_t context() const override { return context_; }
  Recipe recipe() const override { return definition_.recipe; }

  Batch sample_batch(std::int64_t count, Rng& rng) const override;
  Batch unseen_batch(std::int64_t count, Rng& rng) const override;

  /// Throws: ShapeError if the model's answer is not (B, T, V); NonFiniteError if a logit is NaN or
  /// +infinity.
  std::vector<Measure> score(const LanguageModel& model, Rng& rng) const override;

 private:
  Definition definition_;
  std::int64_t given_ = 0;  // ids of a prompt
  std::int64_t context_ = 0;
};

}  // namespace fovea
