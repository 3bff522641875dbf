#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/autograd/base/export.h"
#include "fovea/autograd/base/rng.h"

namespace fovea {

/// A source of sentences whose true next-word distribution is known: a machine of states, joined by arcs that
/// each say one word. A sentence is a walk along arcs from state 0 to a state that none leaves.
///
/// From one state, no two arcs say the same word, so a prefix determines its state, and with it the
/// distribution of the next word. What no model can beat then follows exactly, and so does what a bigram
/// model can reach.
class FOVEA_API WordChain {
 public:
  struct Arc {
    std::int64_t word;
    double probability;
    std::int64_t next;
  };

  static constexpr std::int64_t first = 0;

  /// `start` is the id that stands before the first word. Throws: IndexError if it is outside [0,
  /// vocabulary).
  WordChain(std::int64_t vocabulary, std::int64_t start);

  std::int64_t add_state();

  /// Lets the words, equally likely among themselves, lead from one state to another with that probability in
  /// all. Throws: IndexError for a state or word that there is not; ValueError for a probability outside [0,
  /// 1], no words, or a word that leaves `from` already.
  void link(std::int64_t from, std::span<const std::int64_t> words, double probability, std::int64_t to);

  /// The arcs that leave a state: the distribution of the next word. Throws: IndexError.
  std::span<const Arc> arcs(std::int64_t state) const;
  /// The arc by which a word leaves a state, or none. Throws: IndexError for the state.
  const Arc* find(std::int64_t state, std::int64_t word) const;
  /// An arc by its probability. Throws: IndexError; ValueError at an end.
  const Arc& draw(std::int64_t state, Rng& rng) const;

  /// The entropy of the source in nats per word: the expected nats of a sentence over its expected words,
  ///   sum_s n(s) H(next word | s) / sum_s n(s), with n(s) the expected visits to state s.
  /// Throws: ValueError if a state's probabilities do not add up to 1 or a sentence may go on forever.
  double entropy() const;

  /// The least cross-entropy, in the same unit, of a model that sees the last word only:
  ///   sum_ab n(ab) ln(n(a) / n(ab)) / sum_ab n(ab), with n(ab) the expected times that word b follows a.
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
