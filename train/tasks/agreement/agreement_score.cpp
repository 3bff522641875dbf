#include <algorithm>
#include <cmath>

#include "autograd/base/fail.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/tasks/agreement/agreement.h"
#include "train/tasks/base/sequences.h"

namespace fovea {
namespace {

constexpr std::size_t sentences_at_once = 128;

// The Kullback-Leibler divergence sum p ln(p / q), with q = softmax(logits).
double divergence(std::span<const double> p, std::span<const double> logits) {
  const double largest = *std::ranges::max_element(logits);
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - largest);
  const double log_total = largest + std::log(total);

  double nats = 0;
  for (std::size_t v = 0; v < p.size(); ++v) {
    if (p[v] > 0) nats += p[v] * (std::log(p[v]) - (logits[v] - log_total));
  }
  return std::max(nats, 0.0);  // rounding may leave -1e-17 where p = q
}

void count(Agreement::Share& share, bool hit) {
  share.hits += hit ? 1 : 0;
  ++share.total;
}

struct Totals {
  double nats = 0;
  std::int64_t tokens = 0;
};

// Compares a model's logits (T, V) for one sentence, row-major, with the truth.
void add_sentence(const Agreement& grammar, const Agreement::Sentence& sentence,
                  std::span<const double> logits, Agreement::Score& score, Totals& totals) {
  const std::span<const std::int64_t> ids(sentence.ids);
  const auto words = static_cast<std::size_t>(grammar.vocabulary().size());
  const auto tally = [&](Agreement::Share Agreement::Accuracy::*share, bool right) {
    count(score.all.*share, right);
    if (sentence.opposite_attractor) count(score.opposed.*share, right);
  };
  for (std::size_t p = 1; p < ids.size(); ++p) {
    const std::vector<double> truth = grammar.next_word(ids.first(p));
    const std::span<const double> row = logits.subspan((p - 1) * words, words);
    totals.nats += divergence(truth, row);
    ++totals.tokens;
    const std::int64_t likeliest = std::ranges::max_element(row) - row.begin();
    const auto position = static_cast<std::int64_t>(p);
    if (position == sentence.verb) tally(&Agreement::Accuracy::verb, likeliest == ids[p]);
    if (position == sentence.predicate) {
      tally(&Agreement::Accuracy::predicate, truth[static_cast<std::size_t>(likeliest)] > 0);
    }
  }
}

}  // namespace

Agreement::Score Agreement::score(const LanguageModel& model, Rng& rng, std::int64_t sentences) const {
  if (sentences < 1) {
    fail<ValueError>("[Agreement::score] {} sentences were asked for: ask for at least 1", sentences);
  }
  std::vector<Sentence> fresh;
  for (std::int64_t i = 0; i < sentences; ++i) fresh.push_back(sample(rng));
  return score(model, fresh);
}

Agreement::Score Agreement::score(const LanguageModel& model, std::span<const Sentence> sentences) const {
  if (sentences.empty()) fail<ValueError>("[Agreement::score] there are no sentences: give at least 1");
  Score score;
  Totals totals;
  while (!sentences.empty()) {
    const auto some = sentences.first(std::min(sentences_at_once, sentences.size()));
    sentences = sentences.subspan(some.size());
    const Tensor logits = contiguous(detail::ask(model, batch(some).inputs, vocabulary_.size()));
    const std::span<const double> values(logits.data<double>(), static_cast<std::size_t>(logits.numel()));
    const std::size_t size = values.size() / some.size();
    for (std::size_t b = 0; b < some.size(); ++b) {
      add_sentence(*this, some[b], values.subspan(b * size, size), score, totals);
    }
  }
  score.excess = totals.nats / static_cast<double>(totals.tokens);
  score.loss = entropy_floor() + score.excess;
  return score;
}

}  // namespace fovea
