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

/// What is asked, and the one answer that is right.
struct PromptAnswer {
  std::vector<std::int64_t> prompt;
  std::vector<std::int64_t> answer;
};

/// A task of prompts, chosen at random, and answers that follow from them: one round, or several that build
/// on each other. A model reads all as one text, and is judged on the answers alone.
///
/// The metric is the share of held-out instances in which each token of each answer is the likeliest after
/// the right tokens before it. This is how often greedy generation gives all answers as they should be.
class FOVEA_API AnswerTask final : public Task {
 public:
  struct Definition {
    std::string summary;
    Vocabulary vocabulary;
    /// Draws an instance: its rounds, with prompts and answers of the same lengths each time.
    std::function<std::vector<PromptAnswer>(Rng& rng)> instance;
    double held_out = 0.125;               ///< the share of instances that training never sees
    std::string metric = "answers right";  ///< the name of the share that is at best 1
    double allowed = 0.01;                 ///< how far below 1 that may be
    Recipe recipe = {};
  };

  /// Throws: ValueError for an instance without a round, a prompt or an answer, or a share outside (0, 1).
  explicit AnswerTask(Definition definition);

  std::string_view summary() const override { return definition_.summary; }
  const Vocabulary& vocabulary() const override { return definition_.vocabulary; }
  std::int64_t context() const override { return std::ssize(judged_) - 1; }
  Recipe recipe() const override { return definition_.recipe; }

  /// Throws: also ValueError if an instance has other lengths than those before.
  Batch sample_batch(std::int64_t count, Rng& rng) const override;
  Batch unseen_batch(std::int64_t count, Rng& rng) const override;

  /// Throws: ShapeError if the model's answer is not (B, T, V); NonFiniteError if a logit is NaN or
  /// +infinity.
  std::vector<Metric> score(const LanguageModel& model, Rng& rng) const override;

 private:
  Definition definition_;
  std::vector<bool> judged_;  // which ids of an instance are those of answers
};

}  // namespace fovea
