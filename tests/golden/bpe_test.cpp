// Byte-pair encoding against the PyPI package `tokenizers`, which bpe.py has asked.

#include <nlohmann/json.hpp>

#include <filesystem>

#include "fovea/train/data/text_data.h"
#include "fovea/train/tokenizers/byte_pair_tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

using namespace fovea;

namespace {

const std::filesystem::path folder = std::filesystem::path(FOVEA_SOURCE_DIR) / "tests" / "golden" / "bpe";

BytePairTokenizer golden_tokenizer() {
  return BytePairTokenizer::load(folder / "vocab.json", folder / "merges.txt");
}

}  // namespace

TEST_CASE("Golden: byte pairs give the ids of the package tokenizers", "[train][golden]") {
  const BytePairTokenizer tokenizer = golden_tokenizer();
  const nlohmann::json golden = nlohmann::json::parse(read_text(folder / "texts.json"));
  CHECK(golden["texts"].size() > 200);
  for (const nlohmann::json& expected : golden["texts"]) {
    const auto text = expected["text"].get<std::string>();
    INFO(expected.dump());
    CHECK(tokenizer.encode(text) == expected["ids"].get<std::vector<std::int64_t>>());
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("Golden: training learns the merges that the package tokenizers learns", "[train][golden]") {
  const BytePairTokenizer expected = golden_tokenizer();
  const BytePairTokenizer trained = BytePairTokenizer::train(read_text(folder / "text.txt"));
  REQUIRE(trained.merges().size() == expected.merges().size());
  for (std::size_t i = 0; i < trained.merges().size(); ++i) {
    INFO("merge " << i);
    const auto& ours = trained.merges()[i];
    const auto& theirs = expected.merges()[i];
    CHECK(trained.token(ours.left) == expected.token(theirs.left));
    CHECK(trained.token(ours.right) == expected.token(theirs.right));
  }
  // Theirs has the special token before all others.
  for (std::int64_t id = 0; id < trained.size(); ++id) CHECK(trained.token(id) == expected.token(id + 1));
}

TEST_CASE("Golden: a special token is found by its text, and texts don't reach it", "[train][golden]") {
  const BytePairTokenizer tokenizer = golden_tokenizer();
  CHECK(tokenizer.find("<|endoftext|>") == 0);
  CHECK(tokenizer.token(0) == "<|endoftext|>");
  CHECK(tokenizer.encode("<|endoftext|>").size() > 1);
}

TEST_CASE("Golden: files are written as they were read", "[train][golden]") {
  const TemporaryFolder copy;
  golden_tokenizer().save(copy / "vocab.json", copy / "merges.txt");
  for (const char* name : {"vocab.json", "merges.txt"}) {
    CHECK(read_text(copy / name) == read_text(folder / name));
  }
}
