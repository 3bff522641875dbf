#include "fovea/train/tokenizers/tokenizer.h"

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "tests/support/catch.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

// Characters of each length in UTF-8, and a newline.
constexpr std::string_view sample = "b\naé中👀a";

}  // namespace

TEST_CASE("CharacterTokenizer: ids follow the order of code points", "[train]") {
  const CharacterTokenizer tokenizer(sample);
  CHECK(tokenizer.size() == 6);
  CHECK(tokenizer.encode("\nabé中👀") == Ids{0, 1, 2, 3, 4, 5});
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.decode(tokenizer.encode(sample)) == sample);
  CHECK(tokenizer.token(4) == "中");
  CHECK(tokenizer.find("👀") == 5);
  CHECK(tokenizer.find("c") == std::nullopt);
}

TEST_CASE("CharacterTokenizer: a character without a token is refused, with its code and position",
          "[train]") {
  const CharacterTokenizer tokenizer(sample);
  CHECK_THROWS_AS(tokenizer.encode("aéß"), ValueError);
  CHECK_THROWS_WITH(
      tokenizer.encode("aéß"),
      ContainsSubstring("[CharacterTokenizer::encode] 'ß' (U+00DF) at byte 3 is not among the 6 "
                        "characters known"));
  CHECK_THROWS_WITH(tokenizer.encode("a\t"), ContainsSubstring("] U+0009 at byte 1"));
  CHECK_THROWS_WITH(tokenizer.encode("🎯"), ContainsSubstring("'🎯' (U+1F3AF) at byte 0"));
}

TEST_CASE("CharacterTokenizer: a byte that is not UTF-8 is refused, with its position", "[train]") {
  const CharacterTokenizer tokenizer(sample);
  // A continuation byte alone, an overlong slash, a surrogate, a code beyond U+10FFFF, a character cut short.
  for (const std::string bad : {"\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE4\xB8", "\xFF"}) {
    INFO(bad.size() << " bytes");
    CHECK_THROWS_AS(tokenizer.encode("aé" + bad), ValueError);
    CHECK_THROWS_WITH(tokenizer.encode("aé" + bad), ContainsSubstring("at position 3 is not UTF-8"));
    CHECK_THROWS_WITH(CharacterTokenizer("aé" + bad), ContainsSubstring("at position 3 is not UTF-8"));
  }
  CHECK_THROWS_WITH(tokenizer.encode("\xFF"), ContainsSubstring("byte 0xFF"));
  CHECK_THROWS_WITH(CharacterTokenizer(""), ContainsSubstring("the text is empty"));
}

TEST_CASE("CharacterTokenizer: <unk>, if asked for, stands for all other characters", "[train]") {
  const CharacterTokenizer tokenizer(sample, {.unknown = true});
  CHECK(tokenizer.size() == 7);
  CHECK(tokenizer.find("<unk>") == 6);
  CHECK(tokenizer.encode("aßb\xFF\xFE") == Ids{1, 6, 2, 6, 6});
  CHECK(tokenizer.decode(Ids{1, 6, 2}) == "a<unk>b");
  CHECK(tokenizer.encode(sample) == CharacterTokenizer(sample).encode(sample));
}

TEST_CASE("ByteTokenizer: any bytes are encoded and decoded back", "[train]") {
  const ByteTokenizer tokenizer;
  CHECK(tokenizer.size() == 256);
  CHECK(tokenizer.encode("a\xFFé") == Ids{97, 255, 195, 169});
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(tokenizer.decode(tokenizer.encode(all)) == all);
}

TEST_CASE("Tokenizers: an id outside the vocabulary is refused, with its position", "[train]") {
  const ByteTokenizer tokenizer;
  CHECK_THROWS_AS(tokenizer.token(256), IndexError);
  CHECK_THROWS_AS(tokenizer.decode(Ids{-1}), IndexError);
  CHECK_THROWS_WITH(tokenizer.decode(Ids{1, 2, 300}),
                    ContainsSubstring("id 300 at position 2 is outside the vocabulary of 256"));
}

TEST_CASE("Tokenizers: a tokenizer comes back from its JSON", "[train]") {
  const auto copy = [](const Tokenizer& tokenizer) { return tokenizer_from_json(tokenizer.to_json()); };
  CHECK(copy(ByteTokenizer())->encode("aé") == Ids{97, 195, 169});
  CHECK(copy(CharacterTokenizer(sample))->encode(sample) == CharacterTokenizer(sample).encode(sample));
  CHECK_THROWS_AS(copy(CharacterTokenizer(sample))->encode("ß"), ValueError);
  CHECK(copy(CharacterTokenizer(sample, {.unknown = true}))->encode("aß") == Ids{1, 6});
}

TEST_CASE("Tokenizers: JSON that describes no tokenizer is refused", "[train]") {
  for (const char* json :
       {"", "{", "[]", "7", R"({"type":7})", R"({"type":"word"})", R"({"type":"character"})",
        R"({"type":"character","characters":[],"unknown":true})",
        R"({"type":"character","characters":"","unknown":true})",
        R"({"type":"byte_pair","vocab":{"a":0},"merges":[]})",
        R"({"type":"byte_pair","vocab":[],"merges":[]})"}) {
    INFO(json);
    CHECK_THROWS_AS(tokenizer_from_json(json), ValueError);
    CHECK_THROWS_WITH(tokenizer_from_json(json), ContainsSubstring("[tokenizer_from_json]"));
  }
  CHECK_THROWS_WITH(tokenizer_from_json(R"({"type":"word"})"),
                    ContainsSubstring("no tokenizer of type 'word': use character, byte or byte_pair"));
}
