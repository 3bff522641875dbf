#include "fovea/train/tasks/agreement/word_chain.h"

#include <cmath>

#include "autograd/base/fail.h"

namespace fovea {

WordChain::WordChain(std::int64_t vocabulary, std::int64_t start) : vocabulary_(vocabulary), start_(start) {
  if (start < 0 || start >= vocabulary) {
    fail<IndexError>("[WordChain] the start word {} is outside the vocabulary of {}", start, vocabulary);
  }
}

std::int64_t WordChain::add_state() {
  arcs_.emplace_back();
  return static_cast<std::int64_t>(arcs_.size()) - 1;
}

const std::vector<WordChain::Arc>& WordChain::state(const char* name, std::int64_t index) const {
  if (index < 0 || index >= static_cast<std::int64_t>(arcs_.size())) {
    fail<IndexError>("[WordChain::{}] state {} is outside the {} states of the chain", name, index,
                     arcs_.size());
  }
  return arcs_[static_cast<std::size_t>(index)];
}

void WordChain::link(std::int64_t from, std::span<const std::int64_t> words, double probability,
                     std::int64_t to) {
  std::vector<Arc> added = state("link", from);
  state("link", to);
  if (!(probability >= 0 && probability <= 1) || words.empty()) {
    fail<ValueError>(
        "[WordChain::link] there are {} words with probability {}: give at least 1 word and a probability in "
        "[0, 1]",
        words.size(), probability);
  }
  for (const std::int64_t word : words) {
    if (word < 0 || word >= vocabulary_) {
      fail<IndexError>("[WordChain::link] word {} is outside the vocabulary of {}", word, vocabulary_);
    }
    for (const Arc& arc : added) {
      if (arc.word == word) {
        fail<ValueError>("[WordChain::link] word {} leaves state {} twice: its next state would be ambiguous",
                         word, from);
      }
    }
    added.push_back({word, probability / static_cast<double>(words.size()), to});
  }
  arcs_[static_cast<std::size_t>(from)] = std::move(added);
}

std::span<const WordChain::Arc> WordChain::arcs(std::int64_t index) const { return state("arcs", index); }

const WordChain::Arc* WordChain::find(std::int64_t index, std::int64_t word) const {
  for (const Arc& arc : state("find", index)) {
    if (arc.word == word) return &arc;
  }
  return nullptr;
}

const WordChain::Arc& WordChain::draw(std::int64_t index, Rng& rng) const {
  const std::vector<Arc>& choices = state("draw", index);
  if (choices.empty())
    fail<ValueError>("[WordChain::draw] no arc leaves state {}: it is the end of a sentence", index);
  double left = rng.uniform();
  for (const Arc& arc : choices) {
    left -= arc.probability;
    if (left < 0) return arc;
  }
  // If rounding leaves a rest of 1e-16, the last possible arc gets it.
  const Arc* last = &choices.back();
  while (last->probability == 0 && last != choices.data()) --last;
  return *last;
}

// Moves all probability along the arcs, one word at a time, until it has reached the ends.
std::vector<double> WordChain::expected_visits() const {
  if (arcs_[first].empty()) fail<ValueError>("[WordChain] there are no sentences: no arc leaves state 0");
  std::vector<double> visits(arcs_.size()), mass(arcs_.size()), moved;
  mass[first] = 1;
  for (std::size_t length = 0; length <= arcs_.size(); ++length) {
    bool ended = true;
    moved.assign(arcs_.size(), 0);
    for (std::size_t s = 0; s < arcs_.size(); ++s) {
      if (mass[s] == 0 || arcs_[s].empty()) continue;
      ended = false;
      visits[s] += mass[s];
      double total = 0;
      for (const Arc& arc : arcs_[s]) {
        moved[static_cast<std::size_t>(arc.next)] += mass[s] * arc.probability;
        total += arc.probability;
      }
      if (std::abs(total - 1) > 1e-12) {
        fail<ValueError>(
            "[WordChain] the probabilities of the arcs that leave state {} add up to {} instead of 1", s,
            total);
      }
    }
    if (ended) return visits;
    mass.swap(moved);
  }
  fail<ValueError>("[WordChain] a sentence may never end: the arcs form a cycle");
}

double WordChain::entropy() const {
  const std::vector<double> visits = expected_visits();
  double nats = 0;
  double words = 0;
  for (std::size_t s = 0; s < arcs_.size(); ++s) {
    words += visits[s];
    for (const Arc& arc : arcs_[s]) {
      if (arc.probability > 0) nats -= visits[s] * arc.probability * std::log(arc.probability);
    }
  }
  return nats / words;
}

double WordChain::bigram_entropy() const {
  const auto size = static_cast<std::size_t>(vocabulary_);
  std::vector<double> pairs(size * size);  // n(ab) at a * size + b
  const auto count_after = [&](std::int64_t a, std::int64_t from, double times) {
    for (const Arc& arc : arcs_[static_cast<std::size_t>(from)]) {
      pairs[static_cast<std::size_t>(a) * size + static_cast<std::size_t>(arc.word)] +=
          times * arc.probability;
    }
  };
  const std::vector<double> visits = expected_visits();
  count_after(start_, first, 1);
  for (std::size_t s = 0; s < arcs_.size(); ++s) {
    for (const Arc& arc : arcs_[s]) count_after(arc.word, arc.next, visits[s] * arc.probability);
  }

  double nats = 0;
  double words = 0;
  for (std::size_t a = 0; a < size; ++a) {
    const std::span<const double> followers(pairs.data() + a * size, size);
    double total = 0;
    for (const double times : followers) total += times;
    for (const double times : followers) {
      if (times > 0) nats += times * std::log(total / times);
    }
    words += total;
  }
  return nats / words;
}

}  // namespace fovea
