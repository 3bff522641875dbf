#include "cli/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/nearest.h"
#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/data/text_data.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "fovea/train/tokenizers/clean_text.h"
#include "fovea/train/tokenizers/tokenizer.h"
#include "train/io/file.h"

namespace fovea::cli {
namespace {

// The batch size of evaluations. It does not depend on the batch size of training, nor does the result on it.
constexpr std::int64_t evaluation_batch = 64;
// A task generates its data without end, so its evaluation takes this many batches.
constexpr std::int64_t evaluation_batches = 16;

// The context of a model of lines is that of the longest, and a step takes a time that grows with its square:
// one line of 20,000 letters among names makes steps of minutes, in which no signal is heard.
constexpr std::int64_t longest_line = 1024;

// The lines that are held out are the same for every seed, so that runs can be compared.
constexpr std::uint64_t split_seed = 0x5eed;

// The FNV-1a hash tells texts apart, but is no protection against forgery.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    size_ += bytes.size();
  }
  std::string text() const { return fmt::format("{} bytes, fnv1a {:016x}", size_, hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
  std::uint64_t size_ = 0;
};

std::string fingerprint(std::string_view bytes) {
  Fingerprint whole;
  whole.add(bytes);
  return whole.text();
}

// Of a file that may be larger than memory.
std::string fingerprint_of_file(const std::filesystem::path& path) {
  const detail::InputFile file("read_text", path);
  Fingerprint whole;
  std::string part;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(file.size() - at, std::uint64_t{1} << 20));
    file.read(at, std::as_writable_bytes(std::span(part)));
    whole.add(part);
  }
  return whole.text();
}

// Throws: ValueError unless the data are those of the run. A new run has no metadata yet.
void check_fingerprint(const std::string& found, const Metadata& run) {
  const auto saved = run.find("data");
  if (saved == run.end() || saved->second == found) return;
  throw ValueError(fmt::format("the data have changed since the run began: they were {}, and are {}",
                               detail::printable(saved->second, 80), found));
}

std::unique_ptr<Tokenizer> make_tokenizer(const Settings& settings, std::string_view text) {
  const std::string& name = settings.tokenizer;
  if (name == "characters") return std::make_unique<CharacterTokenizer>(text);
  if (name == "bytes") return std::make_unique<ByteTokenizer>();
  if (name == "byte-pairs") {
    return std::make_unique<BytePairTokenizer>(BytePairTokenizer::train(text, {.merges = settings.merges}));
  }
  const std::filesystem::path folder(name);
  if (!std::filesystem::is_directory(folder)) {
    const std::vector<std::string> kinds(tokenizer_kinds.begin(), tokenizer_kinds.end());
    throw ValueError(fmt::format(
        "there is no tokenizer \"{}\": choose characters, bytes, byte-pairs, or a folder with vocab.json and "
        "merges.txt{}",
        detail::printable(name), did_you_mean(name, kinds)));
  }
  return std::make_unique<BytePairTokenizer>(
      BytePairTokenizer::load(folder / "vocab.json", folder / "merges.txt"));
}

// The folder of a run's tokenizer may be gone, since its checkpoints describe the tokenizer too. The weights
// of another run know the tokens of its tokenizer, whatever the text.
std::unique_ptr<Tokenizer> tokenizer_of(const Settings& settings, std::string_view text,
                                        const Metadata& run) {
  const std::filesystem::path folder(settings.tokenizer);
  const auto described = run.find("tokenizer");
  const bool gone = folder.is_absolute() && !std::filesystem::is_directory(folder);
  return (gone || !settings.from.empty()) && described != run.end() ? tokenizer_from_json(described->second)
                                                                    : make_tokenizer(settings, text);
}

template <class Data, class Size>
EvaluationSource batches_in_order(const Data& data, const Size& size) {
  const std::int64_t count = batch_count(data, size);
  return [data, size, count](std::int64_t index) -> std::optional<Batch> {
    if (index >= count) return std::nullopt;
    return batch_at(data, size, index);
  };
}

template <class Data, class Size>
BatchSource random_batches(const Data& data, const Size& size) {
  batch_count(data, size);  // throws if the data are too short for a batch
  return
      [data, size](std::int64_t, Rng& rng) -> std::optional<Batch> { return random_batch(data, size, rng); };
}

// --- Texts that are too short, and lines that are too long -------------------------------------------------

std::string share(const Settings& settings) { return fmt::format("--validation {}", settings.validation); }

// Both parts need something. `unit` is a line or a token.
void check_split(const Settings& settings, std::int64_t size, const char* unit) {
  const double held_out = settings.validation * static_cast<double>(size);
  if (size > 1 && held_out <= static_cast<double>(size - 1)) return;
  throw ValueError(
      fmt::format("the text has {} {}{}, too few for {} to leave some to train on: take a longer text, "
                  "or hold out nothing with --validation 0",
                  with_commas(size), unit, size == 1 ? "" : "s", share(settings)));
}

// Each part needs a block of the context and the token after it.
void check_length(const Settings& settings, std::int64_t size, const std::optional<Split<TokenData>>& parts) {
  const std::int64_t needed = settings.context + 1;
  const auto check = [&](std::int64_t found, const std::string& what, const char* advice) {
    if (found >= needed) return;
    throw ValueError(fmt::format("a context of {} tokens and the next token need {}, but {} {}: {}",
                                 with_commas(settings.context), with_commas(needed), what, with_commas(found),
                                 advice));
  };
  const char* longer = "take a longer text or a shorter --context";
  check(size, "the data has", longer);
  if (!parts) return;
  const std::string of = fmt::format("of the {} tokens, with {}, has", with_commas(size), share(settings));
  check(parts->train.size(), "the part to train on " + of,
        "take a longer text, a shorter --context or a smaller --validation");
  check(parts->validation.size(), "the validation part " + of,
        "take a longer text, a shorter --context or a larger --validation");
}

void check_line_length(const LineData& lines) {
  const std::int64_t found = lines.context() - 1;  // without the newline before the line
  if (found <= longest_line) return;
  throw ValueError(
      fmt::format("--lines learns each line as a whole, of at most {} tokens, and the longest line "
                  "has {}: break it into shorter ones, or learn the text without --lines",
                  with_commas(longest_line), with_commas(found)));
}

// --- Corpora ---------------------------------------------------------------------------------------------

bool is_token_file(const std::string& path) {
  constexpr std::string_view magic = "FOVEAID1";
  const detail::InputFile file("read_text", path);
  std::array<char, magic.size()> first{};
  if (file.size() < first.size()) return false;
  file.read(0, std::as_writable_bytes(std::span(first)));
  return std::string_view(first.data(), first.size()) == magic;
}

// The corpus of tokens or lines, split into two parts unless nothing is held out. `Size` is what
// `random_batch` takes: the number of lines, or of blocks and their length.
template <class Data, class Size>
Corpus corpus_of(const Data& data, const std::optional<Split<Data>>& parts, const Size& size,
                 const Size& evaluation_size, const char* unit) {
  Corpus corpus;
  corpus.vocabulary = data.vocabulary();
  if (!parts) {
    corpus.training = random_batches(data, size);
    corpus.description = fmt::format("{} {}", with_commas(data.size()), unit);
    return corpus;
  }
  corpus.training = random_batches(parts->train, size);
  corpus.validation = batches_in_order(parts->validation, evaluation_size);
  corpus.description = fmt::format("{} {} to train on, {} for validation", with_commas(parts->train.size()),
                                   unit, with_commas(parts->validation.size()));
  return corpus;
}

Corpus corpus_of_lines(const LineData& lines, const Settings& settings) {
  check_line_length(lines);
  std::optional<Split<LineData>> parts;
  if (settings.validation > 0) {
    check_split(settings, lines.size(), "line");
    Rng rng(split_seed);
    parts = split(lines, settings.validation, rng);
  }
  Corpus corpus = corpus_of(lines, parts, settings.recipe.batch, evaluation_batch, "lines");
  corpus.context = lines.context();
  return corpus;
}

Corpus corpus_of_tokens(const TokenData& tokens, const Settings& settings) {
  std::optional<Split<TokenData>> parts;
  if (settings.validation > 0) {
    check_split(settings, tokens.size(), "token");
    parts = split(tokens, settings.validation);
  }
  check_length(settings, tokens.size(), parts);
  Corpus corpus = corpus_of(tokens, parts, Blocks{settings.recipe.batch, settings.context},
                            Blocks{evaluation_batch, settings.context}, "tokens");
  corpus.context = settings.context;
  return corpus;
}

// The vocabulary of a token file decides how much memory a model takes, and a damaged header may say
// anything. Where each token has no chance to occur a few times, nothing could be learned about it either.
void check_vocabulary(const TokenData& tokens, const std::string& name) {
  constexpr std::int64_t small = 65536, times = 16;
  if (tokens.vocabulary() <= std::max(small, tokens.size() / times)) return;
  throw FileError(fmt::format(
      "{}: its header says a vocabulary of {}, but it has only {} tokens: above {}, a vocabulary needs {} "
      "tokens to train on for each of its own",
      name, tokens.vocabulary(), tokens.size(), small, times));
}

Corpus corpus_of_token_file(const Settings& settings, const std::string& name, const Metadata& run) {
  const auto refuse = [&](const char* option, const char* lacks) {
    throw ValueError(fmt::format("{}: {} is a token file, which has no {}", option, name, lacks));
  };
  if (settings.lines) refuse("--lines", "lines");
  if (settings.tokenizer != Settings{}.tokenizer) refuse("--tokenizer", "text");
  const std::string found = fingerprint_of_file(settings.text);
  check_fingerprint(found, run);
  const TokenData tokens = TokenData::open(settings.text);
  check_vocabulary(tokens, name);
  Corpus corpus = corpus_of_tokens(tokens, settings);
  corpus.metadata["data"] = found;
  return corpus;
}

// The text that is learned, whichever system saved it. Of lines, the empty ones mean nothing, nor does the
// last newline, so they are the same for the tokenizer too.
std::string text_to_learn(const Settings& settings) {
  std::string text = clean_text(read_text(settings.text));
  if (!settings.lines && text.empty()) throw ValueError("the text is empty");
  if (!settings.lines) return text;
  std::string lines;
  for (const char c : text + '\n') {
    if (c != '\n' || (!lines.empty() && lines.back() != '\n')) lines += c;
  }
  if (lines.empty()) throw ValueError("the text has no lines but empty ones");
  return lines;
}

// Adds to an error about a text the name of its file.
template <class Work>
Corpus about(const std::string& name, const Work& work) {
  try {
    return work();
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("{}: {}", name, error.what()));
  }
}

Corpus open_text(const Settings& settings, const Metadata& run) {
  const std::string name = detail::printable(std::filesystem::path(settings.text).filename().string());
  Corpus corpus;
  if (is_token_file(settings.text)) {
    corpus = corpus_of_token_file(settings, name, run);
  } else {
    corpus = about(name, [&] {
      const std::string text = text_to_learn(settings);
      const std::string found = fingerprint(text);
      check_fingerprint(found, run);
      const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(settings, text, run);
      Corpus made = settings.lines ? corpus_of_lines(LineData(text, *tokenizer), settings)
                                   : corpus_of_tokens(TokenData(text, *tokenizer), settings);
      made.metadata["tokenizer"] = tokenizer->to_json();
      made.metadata["data"] = found;
      return made;
    });
  }
  corpus.description = fmt::format("{}: {}, vocabulary of {}", name, corpus.description, corpus.vocabulary);
  return corpus;
}

Corpus open_task(const Settings& settings) {
  const std::shared_ptr<const Task> task = make_task(settings.task);
  Corpus corpus;
  corpus.description = fmt::format("{}: {}", settings.task, task->summary());
  corpus.vocabulary = task->vocabulary().size();
  corpus.context = task->context();
  corpus.training = [task, batch = settings.recipe.batch](std::int64_t, Rng& rng) -> std::optional<Batch> {
    return task->sample_batch(batch, rng);
  };
  corpus.validation = [task](std::int64_t index) -> std::optional<Batch> {
    if (index >= evaluation_batches) return std::nullopt;
    Rng rng(static_cast<std::uint64_t>(index));
    return task->unseen_batch(evaluation_batch, rng);
  };
  corpus.metadata["data"] = "task " + settings.task;
  return corpus;
}

}  // namespace

Corpus open_corpus(const Settings& settings, const Metadata& run) {
  Corpus corpus = settings.text.empty() ? open_task(settings) : open_text(settings, run);
  corpus.metadata["vocabulary"] = std::to_string(corpus.vocabulary);
  corpus.metadata["context"] = std::to_string(corpus.context);
  return corpus;
}

void check_text_is_there(const Settings& settings) {
  std::error_code ignored;
  if (settings.text.empty() || std::filesystem::exists(settings.text, ignored)) return;
  throw FileError(
      fmt::format("the text of the run, {}, is not there: if it has moved, name its place with --text FILE",
                  detail::in_quotes(settings.text)));
}

void check_same_data(const Corpus& corpus, const Metadata& checkpoint) {
  check_fingerprint(corpus.metadata.at("data"), checkpoint);
  for (const auto& [key, value] : corpus.metadata) {
    const auto saved = checkpoint.find(key);
    if (saved != checkpoint.end() && saved->second == value) continue;
    throw ValueError(fmt::format("the data have changed since the run began: their {} differs", key));
  }
}

}  // namespace fovea::cli
