#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/tensor/nd_array.h"
#include "fovea/autograd/tensor/tensor.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/tasks/agreement/word_chain.h"
#include "fovea/train/tokenizers/vocabulary.h"

namespace fovea {

/// Agreement at a distance: "the key to the cabinets is rusted."
///
/// A sentence is a subject (`the`, perhaps an adjective, a noun), 0 to 3 phrases (a preposition, `the`, a
/// noun of any class and number: an attractor), `is` or `are`, a predicate and a full stop. The verb agrees
/// with the subject's number and the predicate fits the subject's class, both several words back, whatever
/// the attractors say. The grammar is a WordChain, so the least possible loss is known.
///
/// Threads: an Agreement is not changed once it is made; any number of threads may use it.
class FOVEA_API Agreement {
 public:
  static constexpr std::int64_t padding = 0;  ///< fills a batch; never predicted, and ignored by the loss
  static constexpr std::int64_t start = 1;    ///< stands before the first word

  static constexpr std::string_view example = "the key to the cabinets is rusted.";

  /// A sentence with what there is to know about it. Its token at position p is predicted by row p - 1 of a
  /// model.
  struct Sentence {
    std::vector<std::int64_t> ids;    ///< from the start token to the full stop
    std::int64_t subject = 0;         ///< position of the subject's noun
    std::int64_t verb = 0;            ///< position of `is` or `are`
    std::int64_t predicate = 0;       ///< position of the predicate
    std::int64_t subject_class = 0;   ///< which group of nouns and predicates the subject belongs to
    bool opposite_attractor = false;  ///< whether an attractor has the other number than the subject
  };

  Agreement();

  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// The least possible loss, in nats per predicted token: from the start token to the full stop, no padding.
  double entropy_floor() const { return chain_.entropy(); }
  /// The least loss, in the same unit, of a model that sees the last token only.
  double bigram_loss() const { return chain_.bigram_entropy(); }
  /// The true probability of every word to come after a prefix, which begins with the start token.
  /// Shapes: -> (V,). Throws: ValueError if no sentence begins so, or the prefix is a whole one.
  std::vector<double> next_word(std::span<const std::int64_t> prefix) const;

  Sentence sample(Rng& rng) const;
  /// The sentence that a text says. Throws: ValueError for an unknown word or what is no sentence of the
  /// grammar.
  Sentence parse(std::string_view text) const;

  /// `count` fresh sentences, padded to the longest. Throws: ValueError if count < 1.
  Batch sample_batch(std::int64_t count, Rng& rng) const;
  /// Throws: ValueError if there are none.
  Batch batch(std::span<const Sentence> sentences) const;

  /// What a model says of a batch.
  struct Prediction {
    Tensor logits;   ///< (B, T, V)
    Tensor weights;  ///< (B, T, T): the attention that each row (query) pays to each token; may be undefined
  };
  using Model = std::function<Prediction(const Indices& ids)>;

  /// How often something was so, of how many times.
  struct Share {
    std::int64_t hits = 0;
    std::int64_t total = 0;
    /// 0 to 1; NaN if there was nothing to count.
    double value() const { return static_cast<double>(hits) / static_cast<double>(total); }
  };
  /// How often the likeliest of all words was right.
  struct Accuracy {
    Share verb;       ///< it is the one of `is` and `are` that agrees with the subject
    Share predicate;  ///< it is a predicate of the subject's class
  };
  struct Score {
    /// The mean divergence per predicted token, in nats, of the true next-word distribution p from the
    /// model's q: sum p ln(p / q). This is what the model's loss exceeds the floor by, without the luck of a
    /// sample.
    double excess = 0;
    double loss = 0;   ///< the floor and the excess
    Accuracy all;      ///< over all sentences
    Accuracy opposed;  ///< where an attractor has the other number than the subject
    std::optional<double>
        subject_attention;  ///< mean weight on the subject's noun in the row that predicts the verb
  };
  /// Compares a model with the truth on that many fresh sentences, without recording a graph.
  /// Throws: ShapeError if the model's answer has another shape; NonFiniteError if a logit is NaN or
  /// +infinity; ValueError if sentences < 1.
  Score score(const Model& model, Rng& rng, std::int64_t sentences = 4096) const;
  /// The same on these sentences. Throws: also ValueError if there are none.
  Score score(const Model& model, std::span<const Sentence> sentences) const;

 private:
  Sentence annotate(std::vector<std::int64_t> ids) const;
  std::int64_t state_after(std::span<const std::int64_t> prefix) const;

  Vocabulary vocabulary_;
  WordChain chain_;
};

}  // namespace fovea
