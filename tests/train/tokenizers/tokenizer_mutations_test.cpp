// Thousands of damaged descriptions and files of tokenizers, the same each time. Each gives a tokenizer that
// works, or an error of one printable line.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "autograd/base/text.h"
#include "fovea/autograd/base/error.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "fovea/train/tokenizers/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"
#include "tests/support/mutate.h"

namespace fovea {
namespace {

constexpr std::string_view sentence = "the key to the cabinets is rusted, and the keys are bent";

void check_printable(const std::string& message) {
  CHECK(message == detail::printable(message));
  CHECK(message.size() < 600);
}

void check_works(const Tokenizer& tokenizer) {
  const std::string json = tokenizer.to_json();
  CHECK(tokenizer_from_json(json)->to_json() == json);
  try {
    tokenizer.decode(tokenizer.encode(sentence));
  } catch (const ValueError& error) {  // a tokenizer of characters that lacks one of the sentence
    check_printable(error.what());
  }
}

TEST_CASE("tokenizer_from_json: damaged descriptions are refused or give a tokenizer that works", "[train]") {
  const std::string descriptions[] = {
      CharacterTokenizer(sentence).to_json(), CharacterTokenizer(sentence, {.unknown = true}).to_json(),
      ByteTokenizer().to_json(), BytePairTokenizer::train(sentence, {.merges = 7}).to_json()};
  Rng rng(23);
  int made = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    INFO("mutation " << i);
    try {
      const std::unique_ptr<Tokenizer> tokenizer =
          tokenizer_from_json(mutated(descriptions[i % std::size(descriptions)], rng));
      ++made;
      check_works(*tokenizer);
    } catch (const ValueError& error) {
      ++refused;
      check_printable(error.what());
    }
  }
  CHECK(made > 500);
  CHECK(refused > 10'000);
}

TEST_CASE("BytePairTokenizer: damaged files are refused or give a tokenizer that works", "[train]") {
  const TemporaryFolder folder;
  const std::filesystem::path vocabulary = folder / "vocab.json", merges = folder / "merges.txt";
  BytePairTokenizer::train(sentence, {.merges = 9}).save(vocabulary, merges);
  const auto text_of = [](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string whole[] = {text_of(vocabulary), text_of(merges)};
  Rng rng(29);
  int made = 0, refused = 0;
  for (int i = 0; i < 6'000; ++i) {
    INFO("mutation " << i);
    std::ofstream(vocabulary, std::ios::binary) << (i % 2 == 0 ? mutated(whole[0], rng) : whole[0]);
    std::ofstream(merges, std::ios::binary) << (i % 2 == 1 ? mutated(whole[1], rng) : whole[1]);
    try {
      check_works(BytePairTokenizer::load(vocabulary, merges));
      ++made;
    } catch (const FileError& error) {
      ++refused;
      check_printable(error.what());
    }
  }
  CHECK(made > 100);
  CHECK(refused > 2'000);
}

}  // namespace
}  // namespace fovea
