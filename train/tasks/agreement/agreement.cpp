#include "fovea/train/tasks/agreement/agreement.h"

#include <array>
#include <string>

#include "autograd/base/fail.h"

namespace fovea {
namespace {

using Ids = std::vector<std::int64_t>;

// --- The words -------------------------------------------------------------------------------------------

enum class Kind { special, article, adjective, preposition, noun, verb, predicate, stop };

struct Word {
  std::string text;
  Kind kind;
  std::int64_t group = 0;  // the class of a noun, or the class that a predicate fits
  bool plural = false;     // for nouns and verbs
};

struct Class {
  std::array<const char*, 3> singular, plural;
  std::array<const char*, 2> predicates;
};

constexpr std::array<Class, 5> classes{{
    {{"key", "nail", "hinge"}, {"keys", "nails", "hinges"}, {"rusted", "bent"}},
    {{"dog", "horse", "bird"}, {"dogs", "horses", "birds"}, {"hungry", "asleep"}},
    {{"rose", "fern", "tulip"}, {"roses", "ferns", "tulips"}, {"wilted", "blooming"}},
    {{"nurse", "pilot", "teacher"}, {"nurses", "pilots", "teachers"}, {"tired", "polite"}},
    {{"cabinet", "table", "shelf"}, {"cabinets", "tables", "shelves"}, {"varnished", "dusty"}},
}};

// All words, in the order of their ids; the first two are Agreement::padding and Agreement::start.
std::vector<Word> list_words() {
  std::vector<Word> words{{"<padding>", Kind::special}, {"<start>", Kind::special},   {"the", Kind::article},
                          {"is", Kind::verb, 0, false}, {"are", Kind::verb, 0, true}, {".", Kind::stop}};
  for (const char* text : {"old", "small", "new", "red"}) words.push_back({text, Kind::adjective});
  for (const char* text : {"to", "near", "behind", "under", "beside", "above", "with", "by"}) {
    words.push_back({text, Kind::preposition});
  }
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto group = static_cast<std::int64_t>(c);
    for (const char* text : classes[c].singular) words.push_back({text, Kind::noun, group, false});
    for (const char* text : classes[c].plural) words.push_back({text, Kind::noun, group, true});
    for (const char* text : classes[c].predicates) words.push_back({text, Kind::predicate, group});
  }
  return words;
}

const std::vector<Word>& all_words() {
  static const std::vector<Word> words = list_words();
  return words;
}

const Word& word_of(std::int64_t id) { return all_words()[static_cast<std::size_t>(id)]; }

template <class Condition>
Ids ids_where(Condition condition) {
  Ids ids;
  for (std::size_t i = 0; i < all_words().size(); ++i) {
    if (condition(all_words()[i])) ids.push_back(static_cast<std::int64_t>(i));
  }
  return ids;
}

Ids ids_of(Kind kind) {
  return ids_where([kind](const Word& word) { return word.kind == kind; });
}

Vocabulary make_vocabulary() {
  std::vector<std::string> texts;
  for (const Word& word : all_words()) texts.push_back(word.text);
  return Vocabulary(std::move(texts));
}

// --- The grammar -----------------------------------------------------------------------------------------

constexpr double adjective_probability = 0.5;

// The probability of another phrase after 0, 1, 2 and 3 of them. Long sentences are common, and yet the verb
// stays the likeliest single word wherever it can come, so a model that knows the grammar always ranks it
// first.
constexpr std::array<double, 4> phrase_probability{0.75, 0.6, 0.4, 0};

// Adds what follows a subject's noun: phrases, the verb and a predicate. Verb and predicate depend on the
// subject, and the probability of another phrase on the number of phrases, so each kind of subject has its
// own states.
void build_rest(WordChain& chain, std::int64_t noun, std::int64_t group, bool plural, std::int64_t said) {
  const Ids verb = ids_where([&](const Word& w) { return w.kind == Kind::verb && w.plural == plural; });
  const Ids predicates =
      ids_where([&](const Word& w) { return w.kind == Kind::predicate && w.group == group; });
  const std::int64_t after_verb = chain.add_state();
  chain.link(after_verb, predicates, 1, said);
  for (const double another : phrase_probability) {
    chain.link(noun, verb, 1 - another, after_verb);
    if (another == 0) break;
    const std::int64_t preposition = chain.add_state();
    const std::int64_t article = chain.add_state();
    const std::int64_t attractor = chain.add_state();
    chain.link(noun, ids_of(Kind::preposition), another, preposition);
    chain.link(preposition, ids_of(Kind::article), 1, article);
    chain.link(article, ids_of(Kind::noun), 1, attractor);
    noun = attractor;
  }
}

WordChain build_chain() {
  WordChain chain(static_cast<std::int64_t>(all_words().size()), Agreement::start);
  const std::int64_t article = chain.add_state();
  const std::int64_t adjective = chain.add_state();
  const std::int64_t said = chain.add_state();
  const std::int64_t end = chain.add_state();
  chain.link(WordChain::first, ids_of(Kind::article), 1, article);
  chain.link(article, ids_of(Kind::adjective), adjective_probability, adjective);
  chain.link(said, ids_of(Kind::stop), 1, end);

  const double share = 1.0 / static_cast<double>(2 * classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c) {
    for (const bool plural : {false, true}) {
      const auto group = static_cast<std::int64_t>(c);
      const Ids nouns = ids_where(
          [&](const Word& w) { return w.kind == Kind::noun && w.group == group && w.plural == plural; });
      const std::int64_t noun = chain.add_state();
      chain.link(article, nouns, (1 - adjective_probability) * share, noun);
      chain.link(adjective, nouns, share, noun);
      build_rest(chain, noun, group, plural, said);
    }
  }
  return chain;
}

}  // namespace

// --- Sentences -------------------------------------------------------------------------------------------

Agreement::Agreement() : vocabulary_(make_vocabulary()), chain_(build_chain()) {}

std::int64_t Agreement::state_after(std::span<const std::int64_t> prefix) const {
  if (prefix.empty() || prefix[0] != start) {
    fail<ValueError>("[Agreement] the prefix does not begin with the start token, id {}", start);
  }
  std::int64_t state = WordChain::first;
  for (std::size_t i = 1; i < prefix.size(); ++i) {
    const WordChain::Arc* arc = chain_.find(state, prefix[i]);
    if (!arc) {
      const std::string before = vocabulary_.decode(prefix.subspan(1, i - 1));
      fail<ValueError>("[Agreement] word {}, \"{}\", can't follow \"{}\"", i, vocabulary_.word(prefix[i]),
                       before);
    }
    state = arc->next;
  }
  return state;
}

std::vector<double> Agreement::next_word(std::span<const std::int64_t> prefix) const {
  const std::span<const WordChain::Arc> arcs = chain_.arcs(state_after(prefix));
  if (arcs.empty())
    fail<ValueError>("[Agreement::next_word] the prefix is a whole sentence: nothing follows its full stop");
  std::vector<double> probabilities(static_cast<std::size_t>(vocabulary_.size()));
  for (const WordChain::Arc& arc : arcs) probabilities[static_cast<std::size_t>(arc.word)] = arc.probability;
  return probabilities;
}

// The first noun is the subject, and those after it are attractors.
Agreement::Sentence Agreement::annotate(Ids ids) const {
  Sentence sentence;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Word& word = word_of(ids[i]);
    const auto position = static_cast<std::int64_t>(i);
    if (word.kind == Kind::verb) sentence.verb = position;
    if (word.kind == Kind::predicate) sentence.predicate = position;
    if (word.kind != Kind::noun) continue;
    if (sentence.subject == 0) {
      sentence.subject = position;
      sentence.subject_class = word.group;
    } else if (word.plural != word_of(ids[static_cast<std::size_t>(sentence.subject)]).plural) {
      sentence.opposite_attractor = true;
    }
  }
  sentence.ids = std::move(ids);
  return sentence;
}

Agreement::Sentence Agreement::sample(Rng& rng) const {
  Ids ids{start};
  for (std::int64_t state = WordChain::first; !chain_.arcs(state).empty();) {
    const WordChain::Arc& arc = chain_.draw(state, rng);
    ids.push_back(arc.word);
    state = arc.next;
  }
  return annotate(std::move(ids));
}

Agreement::Sentence Agreement::parse(std::string_view text) const {
  Ids ids = vocabulary_.encode(text);
  ids.insert(ids.begin(), start);
  if (!chain_.arcs(state_after(ids)).empty()) {
    fail<ValueError>(
        "[Agreement::parse] \"{}\" is only the beginning of a sentence, which ends with a full stop", text);
  }
  return annotate(std::move(ids));
}

Batch Agreement::batch(std::span<const Sentence> sentences) const {
  std::vector<Ids> sequences;
  for (const Sentence& sentence : sentences) sequences.push_back(sentence.ids);
  return next_token_batch(sequences, padding);
}

Batch Agreement::sample_batch(std::int64_t count, Rng& rng) const {
  if (count < 1)
    fail<ValueError>("[Agreement::sample_batch] {} sentences were asked for: ask for at least 1", count);
  std::vector<Ids> sequences;
  for (std::int64_t i = 0; i < count; ++i) sequences.push_back(sample(rng).ids);
  return next_token_batch(sequences, padding);
}

}  // namespace fovea
