#include "fovea/train/tasks/agreement/word_chain.h"

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Words = std::vector<std::int64_t>;

constexpr std::int64_t vocabulary = 7;
constexpr std::int64_t start = 6;

// Sentences of 2 to 4 words. Words 1 and 2 come from several states, so a bigram model is confused by them.
WordChain small_chain() {
  WordChain chain(vocabulary, start);
  const std::int64_t left = chain.add_state();
  const std::int64_t right = chain.add_state();
  const std::int64_t last = chain.add_state();
  const std::int64_t end = chain.add_state();
  chain.link(WordChain::first, Words{0, 1}, 0.3, left);
  chain.link(WordChain::first, Words{2}, 0.7, right);
  chain.link(left, Words{1, 2, 3}, 0.75, right);
  chain.link(left, Words{4}, 0.25, end);
  chain.link(right, Words{1}, 0.4, last);
  chain.link(right, Words{5, 4}, 0.6, end);
  chain.link(last, Words{2, 5}, 1, end);
  return chain;
}

void each_sentence(const WordChain& chain, std::int64_t state, Words words, double probability,
                   const std::function<void(const Words&, double)>& f) {
  if (chain.arcs(state).empty()) f(words, probability);
  for (const WordChain::Arc& arc : chain.arcs(state)) {
    Words longer = words;
    longer.push_back(arc.word);
    each_sentence(chain, arc.next, longer, probability * arc.probability, f);
  }
}

}  // namespace

TEST_CASE("WordChain: entropy and bigram entropy are those of all sentences, written out", "[train]") {
  const WordChain chain = small_chain();
  double total = 0, nats = 0, length = 0;
  std::map<std::int64_t, double> count;
  std::map<std::pair<std::int64_t, std::int64_t>, double> pairs;
  each_sentence(chain, WordChain::first, {}, 1, [&](const Words& words, double p) {
    total += p;
    nats -= p * std::log(p);
    length += p * static_cast<double>(words.size());
    std::int64_t before = start;
    for (const std::int64_t word : words) {
      count[before] += p;
      pairs[{before, word}] += p;
      before = word;
    }
  });
  double bigram_nats = 0;
  for (const auto& [pair, times] : pairs) bigram_nats -= times * std::log(times / count[pair.first]);

  REQUIRE(total == Approx(1).epsilon(1e-12));
  CHECK(chain.entropy() == Approx(nats / length).epsilon(1e-12));
  CHECK(chain.bigram_entropy() == Approx(bigram_nats / length).epsilon(1e-12));
  CHECK(chain.bigram_entropy() > chain.entropy() + 0.01);
}

TEST_CASE("WordChain: arcs are drawn as often as their probability says", "[train]") {
  const WordChain chain = small_chain();
  Rng rng(11);
  constexpr int draws = 20000;
  std::map<std::int64_t, int> times;
  for (int i = 0; i < draws; ++i) ++times[chain.draw(WordChain::first, rng).word];
  // Four standard deviations of a count, at most.
  const double margin = 4 * std::sqrt(0.25 * draws);
  CHECK(std::abs(times[0] - 0.15 * draws) < margin);
  CHECK(std::abs(times[1] - 0.15 * draws) < margin);
  CHECK(std::abs(times[2] - 0.70 * draws) < margin);
  CHECK(times.size() == 3);
}

TEST_CASE("WordChain: an arc of probability 0 is never drawn and costs nothing", "[train]") {
  WordChain chain(3, 0);
  const std::int64_t end = chain.add_state();
  chain.link(WordChain::first, Words{1}, 1, end);
  chain.link(WordChain::first, Words{2}, 0, end);
  Rng rng(5);
  for (int i = 0; i < 1000; ++i) REQUIRE(chain.draw(WordChain::first, rng).word == 1);
  CHECK(chain.entropy() == 0);
  CHECK(chain.bigram_entropy() == 0);
}

TEST_CASE("WordChain: find gives the arc of a word", "[train]") {
  const WordChain chain = small_chain();
  REQUIRE(chain.find(1, 4) != nullptr);
  CHECK(chain.find(1, 4)->probability == 0.25);
  CHECK(chain.find(1, 4)->next == 4);
  CHECK(chain.find(1, 5) == nullptr);
  CHECK_THROWS_AS(chain.find(5, 1), IndexError);
}

TEST_CASE("WordChain: what has no meaning is refused", "[train]") {
  CHECK_THROWS_AS(WordChain(3, 3), IndexError);
  WordChain chain(3, 0);
  CHECK_THROWS_AS(chain.entropy(), ValueError);
  const std::int64_t end = chain.add_state();
  CHECK_THROWS_AS(chain.link(0, Words{3}, 1, end), IndexError);
  CHECK_THROWS_AS(chain.link(0, Words{1}, 1, 2), IndexError);
  CHECK_THROWS_AS(chain.link(2, Words{1}, 1, end), IndexError);
  CHECK_THROWS_AS(chain.link(0, Words{}, 1, end), ValueError);
  CHECK_THROWS_AS(chain.link(0, Words{1}, 1.5, end), ValueError);
  CHECK_THROWS_AS(chain.link(0, Words{1}, -0.5, end), ValueError);
  CHECK_THROWS_AS(chain.link(0, Words{1, 1}, 0.5, end), ValueError);
  CHECK(chain.arcs(0).empty());  // nothing half done

  chain.link(0, Words{1}, 0.5, end);
  CHECK_THROWS_AS(chain.entropy(), ValueError);  // the other half is missing
  chain.link(0, Words{2}, 0.5, 0);
  CHECK_THROWS_AS(chain.entropy(), ValueError);  // may go on forever
  Rng rng(2);
  CHECK_THROWS_AS(chain.draw(end, rng), ValueError);
}
