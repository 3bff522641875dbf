// From text to batches: tokenizers, token files, a split, random blocks and batches in order.

#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "fovea/fovea.h"

using namespace fovea;

namespace {

std::filesystem::path make_folder() {
  auto folder = std::filesystem::temp_directory_path() / "fovea_tokenize";
  std::filesystem::create_directories(folder);
  std::ofstream text(folder / "input.txt");
  for (int i = 0; i < 50; ++i) text << "The key to the cabinets is rusted. It's " << 1900 + i << "!\n";
  std::ofstream(folder / "names.txt") << "emma\nolivia\nava\nisabella\nsophia\n";
  return folder;
}

}  // namespace

int main() {
  const std::filesystem::path folder = make_folder();
  const std::filesystem::path input = folder / "input.txt";

  // [tokenizers]
  const std::string text = clean_text(read_text(input));
  const CharacterTokenizer characters(text);  // one token for each character that the text has
  const ByteTokenizer bytes;                  // 256 tokens, for any bytes
  const BytePairTokenizer pairs = BytePairTokenizer::train(text, {.merges = 512});
  // [tokenizers]

  // [encode]
  const std::vector<std::int64_t> ids = pairs.encode("The key, the keys\xFF");
  const std::string same = pairs.decode(ids);  // "The key, the keys\xFF"
  // [encode]

  // [unknown]
  const CharacterTokenizer lenient(text, {.unknown = true});
  const std::string marked = lenient.decode(lenient.encode("The kéy"));  // "The k<unk>y"
  // [unknown]

  // [files]
  pairs.save(folder / "vocab.json", folder / "merges.txt");
  const auto loaded = BytePairTokenizer::load(folder / "vocab.json", folder / "merges.txt");
  const std::unique_ptr<Tokenizer> any = tokenizer_from_json(characters.to_json());
  // [files]

  // [data]
  const TokenData data(text, characters);
  const auto [train, validation] = split(data, /*validation=*/0.1);
  // [data]

  // [token_file]
  data.save(folder / "input.tokens");
  const TokenData in_file = TokenData::open(folder / "input.tokens");
  // [token_file]

  // [batches]
  const Blocks blocks{.batch = 12, .context = 64};
  Rng rng(1);
  const Batch batch = random_batch(train, blocks, rng);  // inputs and targets: (12, 64)

  for (std::int64_t i = 0; i < batch_count(validation, blocks); ++i) {
    const Batch part = batch_at(validation, blocks, i);
    // cross_entropy(model(part.inputs), part.targets, {.ignore_index = ignored_target})
  }
  // [batches]

  // [names]
  const std::string list = clean_text(read_text(folder / "names.txt"));
  const CharacterTokenizer letters(list);  // id 0 is the newline
  const LineData names(list, letters);
  const auto [known, unseen] = split(names, /*validation=*/0.2, rng);
  const Batch some = random_batch(known, /*batch=*/3, rng);  // (3, T), T of the longest
  // [names]

  fmt::print("{} characters, {} byte pairs: {} ids or {}\n", characters.size(), pairs.size(),
             characters.encode(text).size(), pairs.encode(text).size());
  fmt::print("{}: {} and {}\n", marked, to_string(batch.inputs.shape()), to_string(some.inputs.shape()));
  std::filesystem::remove_all(folder);
  const bool right = same == "The key, the keys\xFF" && marked == "The k<unk>y" && bytes.size() == 256 &&
                     loaded.size() == pairs.size() && any->size() == characters.size() &&
                     in_file.size() == data.size() && unseen.size() == 1;
  return right ? 0 : 1;
}
