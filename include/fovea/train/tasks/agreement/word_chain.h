#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"

namespace fovea {

/// A source of random sentences whose true next-word distribution is known: a Markov chain of states, with
/// arcs that each emit one word. A sentence is a walk along arcs from state 0 to a state that no arc leaves.
///
/// No two arcs that leave a state emit the same word, so a prefix determines its state, and with it the
/// distribution of the next word. The least possible loss of any model and that of a bigram model follow
/// exactly.
class FOVEA_API WordChain {
 public:
  struct Arc {
    std::int64_t word;
    double probability;
    std::int64_t next;
  };

  static constexpr std::int64_t first = 0;

  /// `start` is the id that stands before the first word.
  /// Throws: IndexError if it is outside [0, vocabulary).
  WordChain(std::int64_t vocabulary, std::int64_t start);

  /// Adds a state and returns its number.
  std::int64_t add_state();

  /// Adds an arc from one state to another for each of the words, which share the probability equally.
  /// Throws: IndexError for an unknown state or word; ValueError if the probability is outside [0, 1], there
  /// are no words, or an arc that leaves `from` has one of the words already.
  void link(std::int64_t from, std::span<const std::int64_t> words, double probability, std::int64_t to);

  /// The arcs that leave a state: the distribution of the next word. Throws: IndexError for an unknown state.
  std::span<const Arc> arcs(std::int64_t state) const;
  /// The arc with this word that leaves a state, or null. Throws: IndexError for an unknown state.
  const Arc* find(std::int64_t state, std::int64_t word) const;
  /// Draws one of the arcs that leave a state, by their probabilities.
  /// Throws: IndexError for an unknown state; ValueError if no arc leaves it.
  const Arc& draw(std::int64_t state, Rng& rng) const;

  /// The entropy of the source in nats per word: the expected nats of a sentence over its expected number of
  /// words,
  ///   sum_s n(s) H(next word | s) / sum_s n(s), where n(s) is the expected number of visits to state s.
  /// Throws: ValueError if a state's probabilities do not add up to 1, or if a sentence may never end.
  double entropy() const;

  /// The least cross-entropy, in the same unit, of a model that sees only the last word:
  ///   sum_ab n(ab) ln(n(a) / n(ab)) / sum_ab n(ab), where n(ab) is the expected number of times that b
  ///   follows a.
  /// Throws: as `entropy`.
  double bigram_entropy() const;

 private:
  const std::vector<Arc>& state(const char* name, std::int64_t index) const;
  std::vector<double> expected_visits() const;

  std::int64_t vocabulary_;
  std::int64_t start_;
  std::vector<std::vector<Arc>> arcs_{1};
};

}  // namespace fovea
