#include "cli/corpus.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/terminal.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/data/text_data.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "fovea/train/tokenizers/tokenizer.h"

namespace fovea::cli {
namespace {

// The batch size of evaluations. It does not depend on the batch size of training, nor does the result on it.
constexpr std::int64_t evaluation_batch = 64;
// A task generates its data without end, so its evaluation takes this many batches.
constexpr std::int64_t evaluation_batches = 16;

// The lines that are held out are the same for every seed, so that runs can be compared.
constexpr std::uint64_t split_seed = 0x5eed;

// The FNV-1a hash tells texts apart, but is no protection against forgery.
std::string fingerprint(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return fmt::format("{} bytes, fnv1a {:016x}", bytes.size(), hash);
}

std::unique_ptr<Tokenizer> make_tokenizer(const Settings& settings, std::string_view text) {
  const std::string& kind = settings.tokenizer;
  if (kind == "characters") return std::make_unique<CharacterTokenizer>(text);
  if (kind == "bytes") return std::make_unique<ByteTokenizer>();
  if (kind == "byte-pairs") {
    return std::make_unique<BytePairTokenizer>(BytePairTokenizer::train(text, {.merges = settings.merges}));
  }
  const std::filesystem::path folder(kind);
  if (!std::filesystem::is_directory(folder)) {
    throw ValueError(fmt::format(
        "there is no tokenizer \"{}\": choose characters, bytes, byte-pairs, or a folder with vocab.json and "
        "merges.txt",
        kind));
  }
  return std::make_unique<BytePairTokenizer>(
      BytePairTokenizer::load(folder / "vocab.json", folder / "merges.txt"));
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

// The corpus of tokens or lines. `Size` is what `random_batch` takes: the number of lines, or of blocks and
// their length. `hold_out` splits off the validation data.
template <class Data, class Size, class HoldOut>
Corpus corpus_of(const Data& data, const Size& size, const Size& evaluation_size, const char* unit,
                 const Settings& settings, const HoldOut& hold_out) {
  Corpus corpus;
  corpus.vocabulary = data.vocabulary();
  if (settings.validation == 0) {
    corpus.training = random_batches(data, size);
    corpus.description = fmt::format("{} {}", with_commas(data.size()), unit);
    return corpus;
  }
  const Split<Data> parts = hold_out(data);
  corpus.training = random_batches(parts.train, size);
  corpus.validation = batches_in_order(parts.validation, evaluation_size);
  corpus.description = fmt::format("{} {} to train on, {} for validation", with_commas(parts.train.size()),
                                   unit, with_commas(parts.validation.size()));
  return corpus;
}

Corpus corpus_of_lines(const LineData& lines, const Settings& settings) {
  const auto hold_out = [&](const LineData& data) {
    Rng rng(split_seed);
    return split(data, settings.validation, rng);
  };
  Corpus corpus = corpus_of(lines, settings.recipe.batch, evaluation_batch, "lines", settings, hold_out);
  corpus.context = lines.context();
  return corpus;
}

Corpus corpus_of_tokens(const TokenData& tokens, const Settings& settings) {
  const auto hold_out = [&](const TokenData& data) { return split(data, settings.validation); };
  Corpus corpus = corpus_of(tokens, Blocks{settings.recipe.batch, settings.context},
                            Blocks{evaluation_batch, settings.context}, "tokens", settings, hold_out);
  corpus.context = settings.context;
  return corpus;
}

Corpus open_text(const Settings& settings) {
  const std::filesystem::path path(settings.text);
  const std::string text = read_text(path);
  const std::string name = path.filename().string();
  Corpus corpus;
  if (text.starts_with("FOVEAID1")) {
    if (settings.lines)
      throw ValueError(fmt::format("--lines: {} is a token file, which has no lines", name));
    corpus = corpus_of_tokens(TokenData::open(path), settings);
  } else {
    const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(settings, text);
    corpus = settings.lines ? corpus_of_lines(LineData(text, *tokenizer), settings)
                            : corpus_of_tokens(TokenData(text, *tokenizer), settings);
    corpus.metadata["tokenizer"] = tokenizer->to_json();
  }
  corpus.description = fmt::format("{}: {}, vocabulary of {}", name, corpus.description, corpus.vocabulary);
  corpus.metadata["data"] = fingerprint(text);
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

Corpus open_corpus(const Settings& settings) {
  Corpus corpus = settings.text.empty() ? open_task(settings) : open_text(settings);
  corpus.metadata["vocabulary"] = std::to_string(corpus.vocabulary);
  corpus.metadata["context"] = std::to_string(corpus.context);
  return corpus;
}

void check_same_data(const Corpus& corpus, const Metadata& checkpoint) {
  for (const auto& [key, value] : corpus.metadata) {
    const auto saved = checkpoint.find(key);
    if (saved != checkpoint.end() && saved->second == value) continue;
    std::string difference;
    if (key == "data" && saved != checkpoint.end())
      difference = fmt::format(" (it was {}, and is {})", saved->second, value);
    throw ValueError(
        fmt::format("the data have changed since the run began: their {} differs{}", key, difference));
  }
}

}  // namespace fovea::cli
