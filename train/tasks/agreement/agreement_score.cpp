#include <algorithm>
#include <cmath>

#include "autograd/base/fail.h"
#include "fovea/autograd/graph/graph.h"
#include "fovea/autograd/ops.h"
#include "fovea/train/tasks/agreement/agreement.h"

namespace fovea {
namespace {

constexpr std::size_t sentences_at_once = 128;

// ln sum_v exp z_v. Throws: NonFiniteError if that is not a number, or no logit is finite.
double log_total(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - largest);
  const double result = largest + std::log(total);
  if (!std::isfinite(result)) {
    fail<NonFiniteError>(
        "[Agreement::score] the model gives a logit that is NaN or infinite: has training diverged?");
  }
  return result;
}

// sum p ln(p / q) with q = softmax(logits), without the -1e-17 that rounding may leave where p = q.
double divergence(std::span<const double> truth, std::span<const double> logits) {
  const double total = log_total(logits);
  double nats = 0;
  for (std::size_t v = 0; v < truth.size(); ++v) {
    if (truth[v] > 0) nats += truth[v] * (std::log(truth[v]) - (logits[v] - total));
  }
  return std::max(nats, 0.0);
}

std::int64_t likeliest(std::span<const double> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

struct Totals {
  double nats = 0;
  std::int64_t tokens = 0;
  double subject_attention = 0;
  std::int64_t sentences = 0;
};

// Row-major answers of a model for a batch, in f64.
struct Answers {
  Tensor logits;   // (B, T, V)
  Tensor weights;  // (B, T, T) or undefined

  std::span<const double> logits_at(std::int64_t sentence, std::int64_t row) const {
    const std::int64_t words = logits.size(2);
    return {logits.data<double>() + (sentence * logits.size(1) + row) * words,
            static_cast<std::size_t>(words)};
  }
  double weight_at(std::int64_t sentence, std::int64_t query, std::int64_t key) const {
    return weights.at({sentence, query, key});
  }
};

Answers ask(const Agreement::Model& model, const Indices& ids, std::int64_t vocabulary) {
  const Agreement::Prediction prediction = model(ids);
  const Shape logits{ids.size(0), ids.size(1), vocabulary};
  const Shape weights{ids.size(0), ids.size(1), ids.size(1)};
  if (prediction.logits.shape() != logits) {
    fail<ShapeError>("[Agreement::score] the model's logits are {}: {} expected for ids {} and {} words",
                     to_string(prediction.logits.shape()), to_string(logits), to_string(ids.shape()),
                     vocabulary);
  }
  if (prediction.weights.defined() && prediction.weights.shape() != weights) {
    fail<ShapeError>("[Agreement::score] the model's attention weights are {}: {} expected for ids {}",
                     to_string(prediction.weights.shape()), to_string(weights), to_string(ids.shape()));
  }
  return {contiguous(to(prediction.logits, f64)), prediction.weights};
}

void count(Agreement::Share& share, bool hit) {
  share.hits += hit ? 1 : 0;
  ++share.total;
}

// Compares the answers for sentence b with the truth, word by word.
void add_sentence(const Agreement& task, const Agreement::Sentence& sentence, const Answers& answers,
                  std::int64_t b, Agreement::Score& score, Totals& totals) {
  const std::span<const std::int64_t> ids(sentence.ids);
  const auto tally = [&](Agreement::Share Agreement::Accuracy::*share, bool right) {
    count(score.all.*share, right);
    if (sentence.opposite_attractor) count(score.opposed.*share, right);
  };
  for (std::size_t p = 1; p < ids.size(); ++p) {
    const auto position = static_cast<std::int64_t>(p);
    const std::vector<double> truth = task.next_word(ids.first(p));
    const std::span<const double> logits = answers.logits_at(b, position - 1);
    totals.nats += divergence(truth, logits);
    ++totals.tokens;
    const std::int64_t guess = likeliest(logits);
    if (position == sentence.verb) tally(&Agreement::Accuracy::verb, guess == ids[p]);
    if (position == sentence.predicate) {
      tally(&Agreement::Accuracy::predicate, truth[static_cast<std::size_t>(guess)] > 0);
    }
  }
  ++totals.sentences;
  if (answers.weights.defined()) {
    totals.subject_attention += answers.weight_at(b, sentence.verb - 1, sentence.subject);
  }
}

}  // namespace

Agreement::Score Agreement::score(const Model& model, Rng& rng, std::int64_t sentences) const {
  if (sentences < 1) fail<ValueError>("[Agreement::score] {} sentences asked for: at least 1", sentences);
  std::vector<Sentence> fresh;
  for (std::int64_t i = 0; i < sentences; ++i) fresh.push_back(sample(rng));
  return score(model, fresh);
}

Agreement::Score Agreement::score(const Model& model, std::span<const Sentence> sentences) const {
  if (sentences.empty()) fail<ValueError>("[Agreement::score] there are no sentences to score by");
  const NoGrad no_grad;
  Score score;
  Totals totals;
  bool attends = true;
  while (!sentences.empty()) {
    const auto some = sentences.first(std::min(sentences_at_once, sentences.size()));
    sentences = sentences.subspan(some.size());
    const Answers answers = ask(model, batch(some).inputs, vocabulary_.size());
    attends = attends && answers.weights.defined();
    for (std::size_t b = 0; b < some.size(); ++b) {
      add_sentence(*this, some[b], answers, static_cast<std::int64_t>(b), score, totals);
    }
  }
  score.excess = totals.nats / static_cast<double>(totals.tokens);
  score.loss = entropy_floor() + score.excess;
  if (attends) score.subject_attention = totals.subject_attention / static_cast<double>(totals.sentences);
  return score;
}

}  // namespace fovea
