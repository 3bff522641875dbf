#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/train/data/batch.h"
#include "fovea/train/tasks/agreement/word_chain.h"
#include "fovea/train/tokenizers/vocabulary.h"

namespace fovea {

/// The grammar of the task "agreement": sentences such as "the key to the cabinets is rusted."
///
/// A sentence is a subject (`the`, perhaps an adjective, and a noun), 0 to 3 phrases (a preposition, `the`
/// and a noun), `is` or `are`, a predicate and a full stop. The verb agrees with the subject in number, and
/// the predicate fits the subject's class of nouns. Both depend on a word several positions back. The nouns
/// of phrases, which may have any number and class, are called attractors, because they attract wrong
/// agreement (Linzen et al. 2016). The grammar is a WordChain, so the least possible loss is known.
///
/// Threads: an Agreement does not change once it is made; any number of threads may use it.
class FOVEA_API Agreement {
 public:
  static constexpr std::int64_t padding =
      0;                                    ///< fills a batch; it is never predicted, and the loss ignores it
  static constexpr std::int64_t start = 1;  ///< stands before the first word

  static constexpr std::string_view example = "the key to the cabinets is rusted.";

  /// A sentence and what is known about it. Row p - 1 of a model's logits predicts the token at position p.
  struct Sentence {
    std::vector<std::int64_t> ids;    ///< from the start token to the full stop
    std::int64_t subject = 0;         ///< the position of the subject's noun
    std::int64_t verb = 0;            ///< the position of `is` or `are`
    std::int64_t predicate = 0;       ///< the position of the predicate
    std::int64_t subject_class = 0;   ///< the subject's class, a group of nouns with predicates of their own
    bool opposite_attractor = false;  ///< whether an attractor differs from the subject in number
  };

  Agreement();

  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// The least possible loss, in nats per predicted token, counted from the start token to the full stop
  /// without padding.
  double entropy_floor() const { return chain_.entropy(); }
  /// The least possible loss, in the same unit, of a model that sees only the last token.
  double bigram_loss() const { return chain_.bigram_entropy(); }
  /// The true probability of every word after a prefix, which begins with the start token.
  /// Shapes: -> (V,). Throws: ValueError if no sentence begins so, or if the prefix is a whole sentence.
  std::vector<double> next_word(std::span<const std::int64_t> prefix) const;

  /// Draws a sentence.
  Sentence sample(Rng& rng) const;
  /// Reads a sentence. Throws: ValueError if a word is unknown or the text is no sentence of the grammar.
  Sentence parse(std::string_view text) const;

  /// Draws sentences and pads them to the longest. Throws: ValueError if count < 1.
  Batch sample_batch(std::int64_t count, Rng& rng) const;
  /// Pads these sentences to the longest. Throws: ValueError if there are none.
  Batch batch(std::span<const Sentence> sentences) const;

  /// How many of `total` predictions were right.
  struct Share {
    std::int64_t hits = 0;
    std::int64_t total = 0;
    /// 0 to 1, or NaN if there was nothing to count.
    double value() const { return static_cast<double>(hits) / static_cast<double>(total); }
  };
  /// How often the model's likeliest word was right.
  struct Accuracy {
    Share verb;       ///< the likeliest word is the verb that agrees with the subject
    Share predicate;  ///< the likeliest word is a predicate of the subject's class
  };
  struct Score {
    /// The mean Kullback-Leibler divergence sum p ln(p / q), in nats per predicted token, of the model's
    /// next-word distribution q from the true one p. It is how far the model's expected loss lies above the
    /// floor, without the chance of drawing easy or hard sentences.
    double excess = 0;
    double loss = 0;   ///< entropy_floor() + excess
    Accuracy all;      ///< over all sentences
    Accuracy opposed;  ///< over the sentences in which an attractor differs from the subject in number
  };
  /// Compares a model with the truth on fresh sentences, without recording a graph.
  /// Throws: ShapeError if the logits are not (B, T, V); NonFiniteError if a logit is NaN or +infinity;
  /// ValueError if sentences < 1.
  Score score(const LanguageModel& model, Rng& rng, std::int64_t sentences = 4096) const;
  /// Compares a model with the truth on these sentences. Throws: as above, and ValueError if there are none.
  Score score(const LanguageModel& model, std::span<const Sentence> sentences) const;

 private:
  Sentence annotate(std::vector<std::int64_t> ids) const;
  std::int64_t state_after(std::span<const std::int64_t> prefix) const;

  Vocabulary vocabulary_;
  WordChain chain_;
};

}  // namespace fovea
