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

// Of evaluations, whatever training has: the result does not depend on it.
constexpr std::int64_t evaluation_batch = 64;
constexpr std::int64_t evaluation_batches = 16;  // of a task, which has no end

// Which lines are kept for validation is the same for all seeds, so that runs can be compared.
constexpr std::uint64_t split_seed = 0x5eed;

// FNV-1a: tells one text from another, not an enemy's from a friend's.
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
        "there is no tokenizer \"{}\": it is characters, bytes, byte-pairs, or a folder with vocab.json and "
        "merges.txt",
        kind));
  }
  return std::make_unique<BytePairTokenizer>(
      BytePairTokenizer::load(folder / "vocab.json", folder / "merges.txt"));
}

// The batches of an evaluation, in order.
template <class Data, class Size>
EvaluationSource in_order(const Data& data, const Size& size) {
  const std::int64_t count = batch_count(data, size);
  return [data, size, count](std::int64_t index) -> std::optional<Batch> {
    if (index >= count) return std::nullopt;
    return batch_at(data, size, index);
  };
}

template <class Data, class Size>
BatchSource at_random(const Data& data, const Size& size) {
  batch_count(data, size);  // refuses what has no batch
  return
      [data, size](std::int64_t, Rng& rng) -> std::optional<Batch> { return random_batch(data, size, rng); };
}

Corpus corpus_of_lines(const Settings& settings, const LineData& data, const std::string& name) {
  Corpus corpus;
  corpus.vocabulary = data.vocabulary();
  corpus.context = data.context();
  if (settings.validation == 0) {
    corpus.training = at_random(data, settings.recipe.batch);
    corpus.description =
        fmt::format("{}: {} lines, {} tokens known", name, with_commas(data.size()), data.vocabulary());
    return corpus;
  }
  Rng rng(split_seed);
  const Split<LineData> parts = split(data, settings.validation, rng);
  corpus.training = at_random(parts.train, settings.recipe.batch);
  corpus.validation = in_order(parts.validation, evaluation_batch);
  corpus.description =
      fmt::format("{}: {} lines to train on, {} for validation, {} tokens known", name,
                  with_commas(parts.train.size()), with_commas(parts.validation.size()), data.vocabulary());
  return corpus;
}

Corpus corpus_of_text(const Settings& settings, const TokenData& data, const std::string& name) {
  const std::int64_t context = settings.context;
  Corpus corpus;
  corpus.vocabulary = data.vocabulary();
  corpus.context = context;
  const Blocks blocks{settings.recipe.batch, context};
  if (settings.validation == 0) {
    corpus.training = at_random(data, blocks);
    corpus.description =
        fmt::format("{}: {} tokens, {} known", name, with_commas(data.size()), data.vocabulary());
    return corpus;
  }
  const Split<TokenData> parts = split(data, settings.validation);
  corpus.training = at_random(parts.train, blocks);
  corpus.validation = in_order(parts.validation, Blocks{evaluation_batch, context});
  corpus.description =
      fmt::format("{}: {} tokens to train on, {} for validation, {} known", name,
                  with_commas(parts.train.size()), with_commas(parts.validation.size()), data.vocabulary());
  return corpus;
}

Corpus open_text(const Settings& settings) {
  const std::filesystem::path path(settings.text);
  const std::string text = read_text(path);
  const std::string name = path.filename().string();
  const bool tokens = text.starts_with("FOVEAID1");
  Corpus corpus;
  if (tokens) {
    if (settings.lines) throw ValueError(fmt::format("--lines: {} is a token file, which has none", name));
    corpus = corpus_of_text(settings, TokenData::open(path), name);
  } else {
    const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(settings, text);
    corpus = settings.lines ? corpus_of_lines(settings, LineData(text, *tokenizer), name)
                            : corpus_of_text(settings, TokenData(text, *tokenizer), name);
    corpus.metadata["tokenizer"] = tokenizer->to_json();
  }
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
      difference = fmt::format(" ({} then, {} now)", saved->second, value);
    throw ValueError(
        fmt::format("the run began with other data than there are now: its {} differs{}", key, difference));
  }
}

}  // namespace fovea::cli
