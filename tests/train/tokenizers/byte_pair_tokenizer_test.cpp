#include "fovea/train/tokenizers/byte_pair_tokenizer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/train/data/text_data.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

std::filesystem::path write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::vector<std::string> tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const std::int64_t id : tokenizer.encode(text)) tokens.push_back(tokenizer.token(id));
  return tokens;
}

std::vector<std::string> merged_by(const BytePairTokenizer& tokenizer) {
  std::vector<std::string> merges;
  for (const auto& merge : tokenizer.merges()) {
    merges.push_back(tokenizer.token(merge.left) + "+" + tokenizer.token(merge.right));
  }
  return merges;
}

const BytePairTokenizer& sample_tokenizer() {
  static const BytePairTokenizer tokenizer = BytePairTokenizer::train(
      "the key to the cabinets is rusted. Größe, größer. 中文 中文 👀👀", {.merges = 40});
  return tokenizer;
}

// Learns the merges again, counting all pairs anew after each merge.
std::vector<std::string> merges_by_recount(const std::vector<std::string>& words, std::size_t merges) {
  const BytePairTokenizer bytes = BytePairTokenizer::train("", {.merges = 0});
  std::vector<std::vector<std::string>> split;
  std::map<std::string, std::int64_t> ids;
  for (std::int64_t id = 0; id < bytes.size(); ++id) ids[bytes.token(id)] = id;
  for (const std::string& word : words) {
    auto& letters = split.emplace_back();
    for (const char byte : word) letters.emplace_back(1, byte);
  }
  std::vector<std::string> learned;
  while (learned.size() < merges) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> counts;
    for (const auto& word : split) {
      for (std::size_t i = 1; i < word.size(); ++i) ++counts[{ids[word[i - 1]], ids[word[i]]}];
    }
    // Of equally frequent pairs, the first in the order of ids.
    auto best = counts.begin();
    for (auto it = counts.begin(); it != counts.end(); ++it) {
      if (it->second > best->second) best = it;
    }
    if (best == counts.end() || best->second < 2) break;
    std::string left, right;
    for (const auto& [token, id] : ids) {
      if (id == best->first.first) left = token;
      if (id == best->first.second) right = token;
    }
    learned.push_back(fmt::format("{}+{}", left, right));
    ids.emplace(left + right, static_cast<std::int64_t>(ids.size()));
    for (auto& word : split) {
      for (std::size_t i = 1; i < word.size(); ++i) {
        if (word[i - 1] != left || word[i] != right) continue;
        word[i - 1] += right;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  return learned;
}

}  // namespace

TEST_CASE("BytePairTokenizer: bytes come first, in GPT-2's order", "[train]") {
  const BytePairTokenizer tokenizer = BytePairTokenizer::train("", {.merges = 5});
  CHECK(tokenizer.size() == 256);
  CHECK(tokenizer.encode("!a~\x7F \xC3") == Ids{0, 64, 93, 221, 220, 127});
}

TEST_CASE(
    "BytePairTokenizer: the most frequent pair is merged first, and of equally frequent ones that with the "
    "lowest ids",
    "[train]") {
  CHECK(merged_by(BytePairTokenizer::train("abc abc ab")) == std::vector<std::string>{"a+b", " +ab"});
  CHECK(merged_by(BytePairTokenizer::train("dc dc ba ba", {.merges = 1})) == std::vector<std::string>{"b+a"});
  CHECK(merged_by(BytePairTokenizer::train("aaaa", {.merges = 9, .min_count = 1})) ==
        std::vector<std::string>{"a+a", "aa+aa"});
  CHECK(BytePairTokenizer::train("abab", {.min_count = 3}).merges().empty());
  CHECK_THROWS_AS(BytePairTokenizer::train("ab", {.merges = -1}), ValueError);
  CHECK_THROWS_AS(BytePairTokenizer::train("ab", {.min_count = 0}), ValueError);
}

TEST_CASE("BytePairTokenizer: updating the counts learns the same merges as counting anew", "[train]") {
  Rng rng(5);
  for (int round = 0; round < 20; ++round) {
    // Two letters make many repeated and overlapping pairs.
    std::vector<std::string> words;
    std::string text;
    for (int w = 0; w < 31; ++w) {
      std::string word(w == 0 ? 0 : 1, ' ');
      const std::int64_t length = 1 + rng.uniform_int(13);
      for (std::int64_t i = 0; i < length; ++i) word += rng.uniform_int(2) == 0 ? 'a' : 'b';
      words.push_back(word);
      text += word;
    }
    CHECK(merged_by(BytePairTokenizer::train(text, {.merges = 60})) == merges_by_recount(words, 60));
  }
}

TEST_CASE("BytePairTokenizer: a megabyte is learned from and encoded in time, even as one word", "[train]") {
  std::string words, one_word;
  Rng rng(7);
  while (one_word.size() < 1'000'000) {
    const auto letter = static_cast<char>('a' + rng.uniform_int(7) * rng.uniform_int(4));
    one_word += letter;
    words += rng.uniform_int(5) == 0 ? ' ' : letter;
  }
  for (const std::string& text : {words, one_word, std::string(1'000'000, 'x')}) {
    const BytePairTokenizer tokenizer = BytePairTokenizer::train(text);
    const Ids ids = tokenizer.encode(text);
    CHECK(ids.size() < text.size() / 2);
    CHECK(tokenizer.decode(ids) == text);
  }
}

TEST_CASE("BytePairTokenizer: words are split as GPT-2 splits them", "[train]") {
  // A tokenizer with every possible merge shows where words end.
  const auto words_of = [](const std::string& text) {
    return tokens_of(BytePairTokenizer::train(text, {.merges = 1000, .min_count = 1}), text);
  };
  using Words = std::vector<std::string>;
  CHECK(words_of("I'll see, it's 1998.") == Words{"I", "'ll", " see", ",", " it", "'s", " 1998", "."});
  CHECK(words_of("I'LL") == Words{"I", "'", "LL"});
  CHECK(words_of("a  b \n\n c  ") == Words{"a", " ", " b", " \n\n", " c", "  "});
  CHECK(words_of("Größe ½x²") == Words{"Größe", " ½", "x", "²"});
  CHECK(words_of("глаз ١٢٣ आँ") == Words{"глаз", " ١٢٣", " आ", "ँ"});
  CHECK(words_of("中文一二 👀!") == Words{"中文一二", " 👀!"});
  CHECK(words_of("a\u00a0\u3000b\u180ec") == Words{"a", "\u00a0", "\u3000", "b", "\u180e", "c"});
  CHECK(words_of("ab\xFF\xFE"
                 "cd \xC3 x") == Words{"ab", "\xFF\xFE", "cd", " ", "\xC3", " x"});
}

TEST_CASE("BytePairTokenizer: any bytes are encoded and decoded back", "[train]") {
  const BytePairTokenizer& tokenizer = sample_tokenizer();
  Rng rng(3);
  const std::string_view seeds = "the Größe 中文👀\n  's";
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const std::int64_t length = rng.uniform_int(61);
    // Random bytes between pieces of text, which may be cut inside a character.
    while (static_cast<std::int64_t>(text.size()) < length) {
      if (rng.uniform_int(2) == 0)
        text += static_cast<char>(rng.uniform_int(256));
      else
        text += seeds.substr(static_cast<std::size_t>(rng.uniform_int(20)),
                             static_cast<std::size_t>(rng.uniform_int(7)));
    }
    REQUIRE(tokenizer.decode(tokenizer.encode(text)) == text);
  }
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(tokenizer.decode(tokenizer.encode(all)) == all);
}

TEST_CASE("BytePairTokenizer: a tokenizer comes back from its JSON and from its files", "[train]") {
  const BytePairTokenizer& tokenizer = sample_tokenizer();
  const std::string text = "the keys to größe 中👀\xFF";
  const TemporaryFolder folder;
  tokenizer.save(folder / "vocab.json", folder / "merges.txt");
  const auto loaded = BytePairTokenizer::load(folder / "vocab.json", folder / "merges.txt");
  CHECK(loaded.encode(text) == tokenizer.encode(text));
  CHECK(loaded.to_json() == tokenizer.to_json());
  const auto described = tokenizer_from_json(tokenizer.to_json());
  CHECK(described->encode(text) == tokenizer.encode(text));
  CHECK(described->to_json() == tokenizer.to_json());
}

namespace {

// The files of a tokenizer with the merges h+e and he+y, which tests then corrupt.
struct Files {
  TemporaryFolder folder;
  std::filesystem::path vocab = folder / "vocab.json";
  std::filesystem::path merges = folder / "merges.txt";
  nlohmann::json tokens;

  Files() {
    BytePairTokenizer::train("hey\nhey\nhe").save(vocab, merges);
    tokens = nlohmann::json::parse(read_text(vocab));
  }
  BytePairTokenizer load() const { return BytePairTokenizer::load(vocab, merges); }
  void write_tokens() const { write(vocab, tokens.dump()); }
};

}  // namespace

TEST_CASE("BytePairTokenizer: a malformed vocab.json is refused with what is wrong", "[train]") {
  Files files;
  const auto refuses = [&](const std::string& text) {
    CHECK_THROWS_AS(files.load(), FileError);
    CHECK_THROWS_WITH(files.load(), ContainsSubstring("[BytePairTokenizer::load] ") &&
                                        ContainsSubstring("vocab.json'") && ContainsSubstring(text));
  };
  SECTION("missing") {
    std::filesystem::remove(files.vocab);
    refuses("No such file or directory");
  }
  SECTION("no JSON") {
    write(files.vocab, "{\"a\": 0,\n\"b\" 1}");
    refuses("line 2");
  }
  SECTION("no object") {
    write(files.vocab, "[\"a\"]");
    refuses("not a JSON object of tokens and their ids");
  }
  SECTION("an id that is no number") {
    files.tokens["he"] = "256";
    files.write_tokens();
    refuses(R"(the id of token 'he' is "256")");
  }
  SECTION("an id that is a list") {
    write(files.vocab, R"({"a":0,"b":[1]})");
    refuses("not a JSON object of tokens and their ids");
  }
  SECTION("an id that is beyond any vocabulary, and would be cut off in 32 bits") {
    files.tokens["he"] = (std::int64_t{1} << 32) + 256;
    files.write_tokens();
    refuses("the id of token 'he' is 4294967552: ids are whole numbers from 0 to 16777215");
  }
  SECTION("lists too deep for what walks through them") {
    write(files.vocab, R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}");
    refuses("it has more than 100 lists and objects within one another");
  }
  SECTION("a long id of bytes that a terminal would obey") {
    files.tokens["he"] = "\x1b[2J" + std::string(100'000, 'x');
    files.write_tokens();
    refuses(R"(the id of token 'he' is "\u001b[2Jxxx)");
    try {
      files.load();
    } catch (const FileError& error) {
      CHECK(std::string_view(error.what()).size() < 400 + files.vocab.string().size());
    }
  }
  SECTION("a token twice") {
    std::string text = files.tokens.dump();
    text.insert(1, R"("he":258,)");
    write(files.vocab, text);
    refuses("token 'he' is given twice, with the ids 256 and 258");
  }
  SECTION("an id beyond the others") {
    files.tokens["hey"] = 300;
    files.write_tokens();
    refuses("the id of token 'hey' is 300: the ids of 258 tokens must be 0 to 257");
  }
  SECTION("one id twice") {
    files.tokens["hey"] = 256;
    files.write_tokens();
    refuses("tokens 'he' and 'hey' have the same id 256");
  }
  SECTION("no token for a byte") {
    files.tokens.erase("Ġ");
    files.tokens["more"] = 220;
    files.write_tokens();
    refuses("byte 0x20 has no token: 'Ġ', which stands for it, is missing");
  }
}

TEST_CASE("BytePairTokenizer: the name of a token that no merge makes is taken literally", "[train]") {
  Files files;
  files.tokens["<end of é>"] = 258;  // the space and é are not letters that stand for a byte
  files.write_tokens();
  const BytePairTokenizer tokenizer = files.load();
  CHECK(tokenizer.find("<end of é>") == 258);
  CHECK(tokenizer.decode(Ids{258}) == "<end of é>");
  CHECK(tokenizer.encode("<end of é>").size() == 11);
  CHECK(tokenizer_from_json(tokenizer.to_json())->to_json() == tokenizer.to_json());
}

TEST_CASE("BytePairTokenizer: a malformed merges.txt is refused with the line", "[train]") {
  const Files files;
  const auto refuses = [&](std::string_view lines, const std::string& text) {
    write(files.merges, lines);
    CHECK_THROWS_AS(files.load(), FileError);
    CHECK_THROWS_WITH(files.load(), ContainsSubstring("merges.txt': ") && ContainsSubstring(text));
  };
  refuses("#version: 0.2\nh e\nhe\n", "line 3: 'he' is not a merge");
  refuses("h e\n\nhe y\n", "line 2: '' is not a merge");
  refuses("h e y\n", "line 1: 'h e y' is not a merge");
  refuses("h e\n y\n", "line 2: ' y' is not a merge");
  refuses("h e\nh y\n", "line 2: 'hy' is not a token");
  refuses("h e\nh e\n", "line 2: 'h e' is given twice: it is merge 1 already");
  refuses("h 中\n", "line 1: 'h 中' has a character that stands for no byte");
  // With line ends of other systems, a byte order mark, and without a newline at the end.
  for (const char* lines : {"h e\r\nhe y", "h e\rhe y\r", "\xEF\xBB\xBF#version: 0.2\r\nh e\nhe y\n"}) {
    write(files.merges, lines);
    CHECK(files.load().merges().size() == 2);
  }
}
