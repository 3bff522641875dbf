#include "fovea/train/tasks/agreement/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/ops.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

const Agreement& grammar() {
  static const Agreement agreement;
  return agreement;
}

// What an event of probability p adds to an entropy, in nats.
double surprise(double p) { return -p * std::log(p); }

std::string word_at(const Agreement::Sentence& sentence, std::int64_t position) {
  return grammar().vocabulary().word(sentence.ids[static_cast<std::size_t>(position)]);
}

// How likely 0, 1, 2 and 3 phrases are, and how many there are on average.
constexpr double p_phrases[] = {0.25, 0.75 * 0.4, 0.75 * 0.6 * 0.6, 0.75 * 0.6 * 0.4};
constexpr double mean_phrases = p_phrases[1] + 2 * p_phrases[2] + 3 * p_phrases[3];

const std::set<std::string> plural_nouns{"keys",   "nails",    "hinges",   "dogs",   "horses",
                                         "birds",  "roses",    "ferns",    "tulips", "nurses",
                                         "pilots", "teachers", "cabinets", "tables", "shelves"};
const std::set<std::string> singular_nouns{"key",   "nail",    "hinge",   "dog",   "horse",
                                           "bird",  "rose",    "fern",    "tulip", "nurse",
                                           "pilot", "teacher", "cabinet", "table", "shelf"};

// The number that the last noun before the verb has.
bool last_noun_is_plural(const Agreement::Sentence& sentence) {
  return plural_nouns.contains(word_at(sentence, sentence.verb - 1));
}

// A model that answers by a function of each prefix: (V,) logits.
template <class LogitsOfPrefix>
LanguageModel model_of(LogitsOfPrefix logits_of, Dtype dtype = f64) {
  return [=](const Indices& ids) {
    const std::int64_t V = grammar().vocabulary().size();
    std::vector<double> logits(static_cast<std::size_t>(ids.numel() * V));
    for (std::int64_t b = 0; b < ids.size(0); ++b) {
      for (std::int64_t t = 0; t < ids.size(1) && ids[b * ids.size(1) + t] != Agreement::padding; ++t) {
        const std::span<const std::int64_t> row(ids.data() + b * ids.size(1),
                                                static_cast<std::size_t>(t) + 1);
        const std::vector<double> answer = logits_of(row);
        std::copy(answer.begin(), answer.end(), logits.begin() + (b * ids.size(1) + t) * V);
      }
    }
    return from_values(logits, {ids.size(0), ids.size(1), V}, dtype);
  };
}

std::vector<double> true_logits(std::span<const std::int64_t> prefix) {
  std::vector<double> p = grammar().next_word(prefix);
  for (double& x : p) x = std::log(x);  // -inf where a word can't follow
  return p;
}

// The truth, but for a verb that agrees with the last noun, and predicates of any class.
std::vector<double> shortsighted_logits(std::span<const std::int64_t> prefix) {
  std::vector<double> p = grammar().next_word(prefix);
  const auto is = static_cast<std::size_t>(*grammar().vocabulary().find("is"));
  const auto are = static_cast<std::size_t>(*grammar().vocabulary().find("are"));
  const bool plural = plural_nouns.contains(grammar().vocabulary().word(prefix.back()));
  const double verb = p[is] + p[are];
  p[is] = plural ? 0.01 * verb : 0.99 * verb;
  p[are] = verb - p[is];
  for (double& x : p) x = std::log(x + 1e-9);
  return p;
}

}  // namespace

TEST_CASE("agreement: the example sentence, annotated", "[train]") {
  const Agreement::Sentence sentence = grammar().parse("the key to the cabinets is rusted.");
  CHECK(grammar().vocabulary().decode(std::span(sentence.ids).subspan(1)) == Agreement::example);
  CHECK(sentence.ids.size() == 9);
  CHECK(sentence.ids[0] == Agreement::start);
  CHECK(word_at(sentence, sentence.subject) == "key");
  CHECK(word_at(sentence, sentence.verb) == "is");
  CHECK(word_at(sentence, sentence.predicate) == "rusted");
  CHECK(sentence.opposite_attractor);
  CHECK_FALSE(grammar().parse("the small keys to the cabinets are bent.").opposite_attractor);
  CHECK(grammar().parse("the dogs are hungry.").subject_class != sentence.subject_class);
}

TEST_CASE("agreement: a text that is no sentence is refused with the word that does not fit", "[train]") {
  CHECK_THROWS_WITH(grammar().parse("the key to the cabinets are rusted."),
                    ContainsSubstring("word 6, \"are\""));
  CHECK_THROWS_WITH(grammar().parse("the key is hungry."),
                    ContainsSubstring("word 4, \"hungry\"") && ContainsSubstring("the key is"));
  CHECK_THROWS_WITH(grammar().parse("the key to the old cabinet is rusted."),
                    ContainsSubstring("word 5, \"old\""));
  CHECK_THROWS_WITH(grammar().parse("the key to the key to the key to the key to the key is rusted."),
                    ContainsSubstring("word 12, \"to\""));
  CHECK_THROWS_WITH(grammar().parse("the kex is rusted."),
                    ContainsSubstring("word 2, \"kex\"") && ContainsSubstring("\"key\""));
  CHECK_THROWS_AS(grammar().parse("the key is rusted"), ValueError);
  CHECK_THROWS_AS(grammar().parse(""), ValueError);
}

TEST_CASE("agreement: samples are sentences of the grammar", "[train]") {
  Rng rng(3);
  std::map<std::size_t, int> lengths;
  std::map<std::int64_t, std::set<std::string>> nouns, predicates;
  int opposed = 0;
  constexpr int sentences = 4000;
  for (int i = 0; i < sentences; ++i) {
    const Agreement::Sentence sentence = grammar().sample(rng);
    ++lengths[sentence.ids.size()];
    const bool plural = word_at(sentence, sentence.verb) == "are";
    const std::string subject = word_at(sentence, sentence.subject);
    REQUIRE((plural ? plural_nouns : singular_nouns).contains(subject));
    REQUIRE((sentence.subject == 2 || sentence.subject == 3));
    REQUIRE(sentence.predicate == sentence.verb + 1);
    REQUIRE((sentence.verb - sentence.subject - 1) % 3 == 0);
    bool differs = false;
    for (std::int64_t p = sentence.subject + 3; p < sentence.verb; p += 3) {
      REQUIRE(plural_nouns.contains(word_at(sentence, p)) + singular_nouns.contains(word_at(sentence, p)) ==
              1);
      differs = differs || plural_nouns.contains(word_at(sentence, p)) != plural;
    }
    REQUIRE(differs == sentence.opposite_attractor);
    opposed += differs ? 1 : 0;
    nouns[sentence.subject_class].insert(subject);
    predicates[sentence.subject_class].insert(word_at(sentence, sentence.predicate));
    REQUIRE(grammar().parse(grammar().vocabulary().decode(std::span(sentence.ids).subspan(1))).ids ==
            sentence.ids);
  }
  CHECK(lengths.begin()->first == 6);
  CHECK(lengths.rbegin()->first == 16);
  // With n attractors, 1 - 2^-n of sentences are opposed.
  const double expected = p_phrases[1] * 1 / 2 + p_phrases[2] * 3 / 4 + p_phrases[3] * 7 / 8;
  CHECK(opposed / static_cast<double>(sentences) == Approx(expected).margin(0.032));
  CHECK(nouns.size() >= 4);
  for (const auto& [group, words] : nouns) CHECK(words.size() >= 6);
  for (const auto& [group, words] : predicates) CHECK(words.size() >= 2);
}

TEST_CASE("agreement: the floor, by hand from the grammar's rules", "[train]") {
  double count = 0;
  for (const double p : p_phrases) count += surprise(p);
  const double adjective = std::log(2) + 0.5 * std::log(4);
  const double nats =
      adjective + std::log(30) + count + mean_phrases * (std::log(8) + std::log(30)) + std::log(2);
  const double words =
      0.5 + 2 + 3 * mean_phrases + 3;  // adjective; the, noun; phrases; verb, predicate, stop
  CHECK(grammar().entropy_floor() == Approx(nats / words).epsilon(1e-12));
}

TEST_CASE("agreement: the bigram loss, by hand from the grammar's rules", "[train]") {
  const double articles = 1 + mean_phrases;
  const double after_article =
      4 * surprise(0.5 / 4 / articles) + 30 * surprise((0.5 + mean_phrases) / 30 / articles);
  const double after_adjective = std::log(30);
  // A noun comes before the verb once a sentence. Its number is the verb's if it is the subject, and in half
  // of the other sentences.
  const double verb = 1 / articles;
  const double agrees = p_phrases[0] + (1 - p_phrases[0]) / 2;
  const double after_noun =
      8 * surprise(mean_phrases / articles / 8) + surprise(verb * agrees) + surprise(verb * (1 - agrees));
  const double after_verb = std::log(10);
  const double nats = articles * after_article + 0.5 * after_adjective + articles * after_noun + after_verb;
  CHECK(grammar().bigram_loss() == Approx(nats / (5.5 + 3 * mean_phrases)).epsilon(1e-12));
  CHECK(grammar().bigram_loss() > grammar().entropy_floor() + 0.1);
}

TEST_CASE("agreement: both losses equal the mean loss over many samples", "[train]") {
  Rng rng(7);
  constexpr int sentences = 20000;
  double nats = 0, words = 0;
  std::map<std::int64_t, double> count;
  std::map<std::pair<std::int64_t, std::int64_t>, double> pairs;
  for (int i = 0; i < sentences; ++i) {
    const Agreement::Sentence sentence = grammar().sample(rng);
    const std::span<const std::int64_t> ids(sentence.ids);
    for (std::size_t p = 1; p < ids.size(); ++p) {
      nats -= std::log(grammar().next_word(ids.first(p))[static_cast<std::size_t>(ids[p])]);
      ++words;
      ++count[ids[p - 1]];
      ++pairs[{ids[p - 1], ids[p]}];
    }
  }
  double bigram_nats = 0;
  for (const auto& [pair, times] : pairs) bigram_nats -= times * std::log(times / count[pair.first]);
  CHECK(nats / words == Approx(grammar().entropy_floor()).margin(0.01));
  CHECK(bigram_nats / words == Approx(grammar().bigram_loss()).margin(0.01));
}

TEST_CASE("agreement: next_word is a distribution, and refuses a prefix that is over", "[train]") {
  const Ids prefix{Agreement::start, *grammar().vocabulary().find("the")};
  const std::vector<double> p = grammar().next_word(prefix);
  double total = 0;
  for (const double x : p) total += x;
  CHECK(total == Approx(1).epsilon(1e-12));
  CHECK(p[Agreement::padding] == 0);
  CHECK(p[static_cast<std::size_t>(*grammar().vocabulary().find("old"))] == Approx(0.125));
  CHECK(p[static_cast<std::size_t>(*grammar().vocabulary().find("keys"))] == Approx(0.5 / 30));
  CHECK_THROWS_AS(grammar().next_word(grammar().parse(Agreement::example).ids), ValueError);
  CHECK_THROWS_AS(grammar().next_word(Ids{}), ValueError);
  CHECK_THROWS_AS(grammar().next_word(Ids{prefix[1]}), ValueError);
}

TEST_CASE("agreement: the same random numbers give the same batch", "[train]") {
  Rng one(13), two(13);
  const Batch batch = grammar().sample_batch(5, one);
  std::vector<Agreement::Sentence> sentences;
  for (int i = 0; i < 5; ++i) sentences.push_back(grammar().sample(two));
  const Batch same = grammar().batch(sentences);
  CHECK(std::ranges::equal(batch.inputs.values(), same.inputs.values()));
  CHECK(std::ranges::equal(batch.targets.values(), same.targets.values()));
  CHECK(one.state() == two.state());
  CHECK(batch.inputs[0] == Agreement::start);
  CHECK_THROWS_AS(grammar().sample_batch(0, one), ValueError);
  CHECK_THROWS_AS(grammar().batch({}), ValueError);
}

TEST_CASE("agreement score: a model that knows the grammar is at the floor and always right", "[train]") {
  const Dtype dtype = GENERATE(f32, f64);
  Rng rng(17);
  const Agreement::Score score = grammar().score(model_of(true_logits, dtype), rng, 300);
  CHECK(score.excess >= 0);
  CHECK(score.excess < (dtype == f64 ? 1e-13 : 1e-6));
  CHECK(score.loss == grammar().entropy_floor() + score.excess);
  CHECK(score.all.verb.hits == 300);
  CHECK(score.all.verb.total == 300);
  CHECK(score.all.predicate.hits == 300);
  CHECK(score.opposed.verb.hits == score.opposed.verb.total);
  CHECK(score.opposed.predicate.hits == score.opposed.predicate.total);
  CHECK(score.opposed.verb.total > 100);
  CHECK(score.opposed.verb.total < 300);
}

TEST_CASE("agreement score: a model that knows nothing has loss ln V", "[train]") {
  Rng rng(19);
  const double V = static_cast<double>(grammar().vocabulary().size());
  const auto same_for_all = [V](auto) { return std::vector<double>(static_cast<std::size_t>(V), 3.7); };
  const Agreement::Score score = grammar().score(model_of(same_for_all), rng);
  CHECK(score.loss == Approx(std::log(V)).margin(0.02));
  CHECK(score.all.verb.hits == 0);
  CHECK(score.all.predicate.hits == 0);
}

TEST_CASE("agreement score: a model that agrees with the last noun is wrong just where that noun differs",
          "[train]") {
  constexpr int sentences = 401;
  Rng rng(23), again(23);
  const Agreement::Score score = grammar().score(model_of(shortsighted_logits), rng, sentences);
  int right = 0, opposed = 0, right_opposed = 0;
  for (int i = 0; i < sentences; ++i) {
    const Agreement::Sentence sentence = grammar().sample(again);
    const bool hit = last_noun_is_plural(sentence) == (word_at(sentence, sentence.verb) == "are");
    right += hit ? 1 : 0;
    opposed += sentence.opposite_attractor ? 1 : 0;
    right_opposed += hit && sentence.opposite_attractor ? 1 : 0;
  }
  CHECK(score.all.verb.total == sentences);
  CHECK(score.all.verb.hits == right);
  CHECK(score.opposed.verb.total == opposed);
  CHECK(score.opposed.verb.hits == right_opposed);
  CHECK(right_opposed < opposed);
  CHECK(score.all.predicate.value() == 1);
  CHECK(score.excess > 0.01);
}

TEST_CASE("agreement score: the loss is infinite if the model rules out a word that comes", "[train]") {
  Rng rng(31);
  const auto no_full_stop = [](std::span<const std::int64_t> prefix) {
    std::vector<double> logits = true_logits(prefix);
    const auto stop = static_cast<std::size_t>(*grammar().vocabulary().find("."));
    if (logits[stop] == 0) logits[0] = 0;
    logits[stop] = -std::numeric_limits<double>::infinity();
    return logits;
  };
  CHECK(grammar().score(model_of(no_full_stop), rng, 3).excess == std::numeric_limits<double>::infinity());
}

TEST_CASE("agreement score: logits of a wrong shape or that are not finite are refused", "[train]") {
  Rng rng(37);
  const std::int64_t V = grammar().vocabulary().size();
  const LanguageModel good = [V](const Indices& ids) { return zeros({ids.size(0), ids.size(1), V}); };
  const LanguageModel narrow = [](const Indices& ids) { return zeros({ids.size(0), ids.size(1), 3}); };
  CHECK_THROWS_AS(grammar().score(narrow, rng, 3), ShapeError);
  CHECK_THROWS_AS(grammar().score(good, rng, 0), ValueError);
  const double bad =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  const auto broken = [=](auto) { return std::vector<double>(static_cast<std::size_t>(V), bad); };
  CHECK_THROWS_AS(grammar().score(model_of(broken), rng, 3), NonFiniteError);
}
