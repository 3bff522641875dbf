#include "fovea/train/data/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

using namespace fovea;

namespace {

using Ids = std::vector<std::int64_t>;

std::filesystem::path write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

Ids list(const Indices& x) { return {x.values().begin(), x.values().end()}; }

Ids counting(std::int64_t n) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Ids all_of(const TokenData& data) {
  Ids ids(static_cast<std::size_t>(data.size()));
  data.read(0, ids);
  return ids;
}

constexpr std::string_view names = "emma\nolivia\r\n\nava\nmia";

}  // namespace

TEST_CASE("read_text: it returns the bytes of a file, or throws an error with its path", "[train]") {
  const TemporaryFolder folder;
  CHECK(read_text(write(folder / "text", "a\r\n\xFF")) == "a\r\n\xFF");
  CHECK_THROWS_AS(read_text(folder / "none.txt"), FileError);
  CHECK_THROWS_WITH(read_text(folder / "none.txt"),
                    ContainsSubstring("none.txt': No such file or directory"));
  CHECK_THROWS_WITH(read_text(folder.path()), ContainsSubstring("' is not a regular file"));
  CHECK_THROWS_WITH(read_text(write(folder / "empty", "")), ContainsSubstring("empty' is empty"));
}

TEST_CASE("TokenData: ids are the same in memory, in slices and in a file", "[train]") {
  const TemporaryFolder folder;
  for (const std::int64_t vocabulary : {97, 65536, 65537}) {
    Ids ids = counting(97);
    ids.back() = vocabulary - 1;
    const TokenData data(ids, vocabulary);
    CHECK(data.size() == 97);
    CHECK(data.vocabulary() == vocabulary);
    CHECK(all_of(data) == ids);
    CHECK(all_of(data.slice(5, 12)) == Ids{5, 6, 7, 8, 9, 10, 11});
    CHECK(all_of(data.slice(5, 12).slice(2, 4)) == Ids{7, 8});

    data.save(folder / "tokens");
    const TokenData in_file = TokenData::open(folder / "tokens");
    CHECK(in_file.vocabulary() == vocabulary);
    CHECK(all_of(in_file) == ids);
    CHECK(std::filesystem::file_size(folder / "tokens") == 32 + 97 * (vocabulary > 65536 ? 4 : 2));
    in_file.slice(90, 97).save(folder / "end");
    CHECK(all_of(TokenData::open(folder / "end")) == Ids(ids.begin() + 90, ids.end()));
  }
}

TEST_CASE("TokenData: a token file has the documented bytes", "[train]") {
  const TemporaryFolder folder;
  TokenData(Ids{1, 258}, 300).save(folder / "tokens");
  using namespace std::string_view_literals;
  CHECK(read_text(folder / "tokens") ==
        "FOVEAID1\2\0\0\0\0\0\0\0\x2C\1\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\0\2\1"sv);
}

TEST_CASE("TokenData: a file that becomes shorter while it is open is an error, not a signal", "[train]") {
  const TemporaryFolder folder;
  constexpr std::int64_t count = 100003;
  TokenData(counting(count), count).save(folder / "tokens");
  const TokenData data = TokenData::open(folder / "tokens");
  std::filesystem::resize_file(folder / "tokens", 4096);
  Ids ids(7);
  data.read(count / 100, ids);
  CHECK(ids[0] == count / 100);
  CHECK_THROWS_WITH(data.read(count / 2, ids),
                    ContainsSubstring("tokens'") && ContainsSubstring("cut it while it was read"));
  CHECK_THROWS_AS(data.save(folder / "copy"), FileError);
  CHECK_FALSE(std::filesystem::exists(folder / "copy"));
}

TEST_CASE("TokenData: a file of 16-bit ids without header opens", "[train]") {
  const TemporaryFolder folder;
  using namespace std::string_view_literals;
  const TokenData data = TokenData::open_raw(write(folder / "train.bin", "\1\0\2\1\xFF\xFF"sv), 65536);
  CHECK(all_of(data) == Ids{1, 258, 65535});
  CHECK_THROWS_WITH(TokenData::open_raw(write(folder / "odd.bin", "abc"), 65536),
                    ContainsSubstring("odd.bin' has 3 bytes, an odd number"));
  const TokenData small = TokenData::open_raw(folder / "train.bin", 300);
  CHECK_THROWS_AS(all_of(small), FileError);
  CHECK_THROWS_WITH(all_of(small), ContainsSubstring("id 65535 at position 2 of '") &&
                                       ContainsSubstring("is outside the vocabulary of 300"));
}

TEST_CASE("TokenData: a vocabulary that ids can't tell apart is refused, and an empty one", "[train]") {
  const TemporaryFolder folder;
  using namespace std::string_view_literals;
  const auto path = write(folder / "train.bin", "\1\0\2\1"sv);
  for (const std::int64_t vocabulary :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{65537}, std::int64_t{1} << 40}) {
    CAPTURE(vocabulary);
    CHECK_THROWS_WITH(TokenData::open_raw(path, vocabulary),
                      ContainsSubstring(fmt::format("the vocabulary has {} tokens", vocabulary)));
  }
  const Ids none;
  CHECK_THROWS_AS(TokenData(none, 0), ValueError);
  CHECK_THROWS_AS(TokenData(none, -7), ValueError);
  CHECK_THROWS_AS(TokenData(none, (std::int64_t{1} << 32) + 1), ValueError);
  TokenData(counting(7), 7).save(folder / "tokens");
  std::string bytes = read_text(folder / "tokens");
  bytes[16] = 0;  // the vocabulary
  CHECK_THROWS_AS(TokenData::open(write(folder / "spoilt", bytes)), FileError);
}

TEST_CASE("TokenData: a file that is not a whole token file is refused", "[train]") {
  const TemporaryFolder folder;
  TokenData(counting(7), 7).save(folder / "tokens");
  const std::string whole = read_text(folder / "tokens");
  const auto refuses = [&](const std::string& bytes, const std::string& text) {
    const auto path = write(folder / "spoilt", bytes);
    CHECK_THROWS_AS(TokenData::open(path), FileError);
    CHECK_THROWS_WITH(TokenData::open(path), ContainsSubstring("spoilt'") && ContainsSubstring(text));
  };
  const auto with = [&](std::size_t at, char byte) {
    std::string bytes = whole;
    bytes[at] = byte;
    return bytes;
  };
  refuses("", "is empty");
  refuses("ROMEO: But, soft!", "it has 17 bytes");
  refuses("ROMEO: But, soft! what light through yonder window breaks?", "does not begin with FOVEAID1");
  refuses(whole.substr(0, whole.size() - 2), "says 7 ids of 2 bytes, but 12 bytes follow");
  refuses(whole + "\1", "15 bytes follow");
  refuses(with(8, 3), "says 3 bytes per id");
  refuses(with(8, 0), "says 0 bytes per id");
  refuses(with(12, 1), "header says");
  refuses(with(19, 1), "a vocabulary of");
  refuses(with(31, 127), "ids of 2 bytes");
  CHECK_THROWS_WITH(TokenData::open(folder / "none"), ContainsSubstring("No such file"));
}

TEST_CASE("TokenData: ids outside the vocabulary and positions outside the data are refused", "[train]") {
  CHECK_THROWS_WITH(TokenData(Ids{0, 1, 7}, 7),
                    ContainsSubstring("id 7 at position 2 is outside the vocabulary of 7"));
  CHECK_THROWS_AS(TokenData(Ids{-1}, 7), IndexError);
  const TokenData data(counting(7), 7);
  Ids three(3);
  CHECK_THROWS_AS(data.read(5, three), IndexError);
  CHECK_THROWS_AS(data.read(-1, three), IndexError);
  CHECK_THROWS_AS(data.slice(3, 2), IndexError);
  CHECK_THROWS_AS(data.slice(0, 8), IndexError);
}

TEST_CASE("TokenData: a split keeps the last part for validation, rounded up", "[train]") {
  const auto sizes = [](std::int64_t n, double fraction) {
    const Split<TokenData> parts = split(TokenData(counting(n), n), fraction);
    CHECK(all_of(parts.validation).back() == n - 1);
    return std::pair(parts.train.size(), parts.validation.size());
  };
  CHECK(sizes(100, 0.1) == std::pair<std::int64_t, std::int64_t>(90, 10));
  CHECK(sizes(101, 0.1) == std::pair<std::int64_t, std::int64_t>(90, 11));
  CHECK(sizes(10, 0.7) == std::pair<std::int64_t, std::int64_t>(3, 7));
  const TokenData data(counting(7), 7);
  for (const double fraction : {0.0, 1.0, -0.1, 0.99}) CHECK_THROWS_AS(split(data, fraction), ValueError);
}

TEST_CASE("Blocks: random ones come from the whole text, and continue from a saved state", "[train]") {
  const TokenData data(counting(17), 17);
  const Blocks blocks{.batch = 3, .context = 5};
  Rng rng(11);
  Ids starts;
  for (int i = 0; i < 100; ++i) {
    const Batch batch = random_batch(data, blocks, rng);
    REQUIRE(to_string(batch.inputs.shape()) == "(3, 5)");
    for (std::int64_t j = 0; j < 15; ++j) {
      CHECK(batch.inputs[j] == batch.inputs[j / 5 * 5] + j % 5);
      CHECK(batch.targets[j] == batch.inputs[j] + 1);
    }
    for (std::int64_t b = 0; b < 3; ++b) starts.push_back(batch.inputs[b * 5]);
  }
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  CHECK(starts == counting(12));

  Rng resumed(rng.state());
  CHECK(list(random_batch(data, blocks, resumed).inputs) == list(random_batch(data, blocks, rng).inputs));
  CHECK(resumed.state() == rng.state());
}

TEST_CASE("Blocks: in order, every id but the first is predicted once", "[train]") {
  for (const std::int64_t n : {6, 7, 16, 17, 31, 37}) {
    const TokenData data(counting(n), n);
    const Blocks blocks{.batch = 3, .context = 5};
    Ids predicted;
    for (std::int64_t index = 0; index < batch_count(data, blocks); ++index) {
      const Batch batch = batch_at(data, blocks, index);
      for (std::int64_t i = 0; i < batch.targets.numel(); ++i) {
        if (batch.targets[i] == ignored_target) continue;
        CHECK(batch.targets[i] == batch.inputs[i] + 1);
        predicted.push_back(batch.inputs[i]);
      }
    }
    CHECK(predicted == counting(n - 1));
  }
  const Batch last = batch_at(TokenData(counting(9), 9), {.batch = 7, .context = 5}, 0);
  CHECK(list(last.inputs) == Ids{0, 1, 2, 3, 4, 5, 6, 7, 0, 0});
  CHECK(list(last.targets) == Ids{1, 2, 3, 4, 5, 6, 7, 8, -1, -1});
}

TEST_CASE("Blocks: a text that is shorter than the context is an error with both lengths", "[train]") {
  const TokenData data(counting(5), 5);
  Rng rng(1);
  CHECK_THROWS_AS(random_batch(data, {.context = 5}, rng), ValueError);
  CHECK_THROWS_WITH(random_batch(data, {.context = 5}, rng),
                    ContainsSubstring("a context of 5 tokens and the next token need 6, but the data has 5"));
  CHECK_THROWS_WITH(batch_count(data, {.context = 64}), ContainsSubstring("need 65, but the data has 5"));
  CHECK_NOTHROW(random_batch(data, {.context = 4}, rng));
  CHECK_THROWS_AS(random_batch(data, {.batch = 0, .context = 2}, rng), ValueError);
  CHECK_THROWS_AS(random_batch(data, {.context = 0}, rng), ValueError);
  CHECK_THROWS_AS(batch_at(data, {.batch = 1, .context = 2}, 2), IndexError);
  CHECK_THROWS_AS(batch_at(data, {.batch = 1, .context = 2}, -1), IndexError);
}

TEST_CASE("LineData: lines stand between newlines, and empty ones are left out", "[train]") {
  const CharacterTokenizer tokenizer(names);
  const LineData lines(names, tokenizer);
  CHECK(lines.size() == 4);
  CHECK(lines.vocabulary() == tokenizer.size());
  CHECK(lines.boundary() == 0);
  CHECK(lines.context() == 7);
  CHECK(tokenizer.decode(lines.line(0)) == "\nemma\n");
  CHECK(tokenizer.decode(lines.line(1)) == "\nolivia\n");
  CHECK(tokenizer.decode(lines.line(3)) == "\nmia\n");
  CHECK_THROWS_AS(lines.line(4), IndexError);
}

TEST_CASE("LineData: rows are padded, and padding is never judged", "[train]") {
  const ByteTokenizer tokenizer;
  const LineData lines("ab\nc\n", tokenizer);
  const Batch batch = batch_at(lines, 5, 0);
  CHECK(list(batch.inputs) == Ids{'\n', 'a', 'b', '\n', 'c', '\n'});
  CHECK(list(batch.targets) == Ids{'a', 'b', '\n', 'c', '\n', ignored_target});
}

TEST_CASE("LineData: batches in order have every line once, and random ones continue from a saved state",
          "[train]") {
  const LineData lines(names, ByteTokenizer());
  CHECK(batch_count(lines, 3) == 2);
  CHECK(batch_at(lines, 3, 0).inputs.size(0) == 3);
  CHECK(batch_at(lines, 3, 1).inputs.size(0) == 1);
  CHECK(batch_at(lines, 3, 1).inputs[1] == 'm');
  CHECK_THROWS_AS(batch_at(lines, 3, 2), IndexError);
  CHECK_THROWS_AS(batch_count(lines, 0), ValueError);

  Rng rng(3);
  CHECK(random_batch(lines, 5, rng).inputs.size(0) == 5);
  Rng resumed(rng.state());
  CHECK(list(random_batch(lines, 5, resumed).targets) == list(random_batch(lines, 5, rng).targets));
  CHECK_THROWS_AS(random_batch(lines, 0, rng), ValueError);
}

TEST_CASE("LineData: lines are the same whatever ends them", "[train]") {
  const CharacterTokenizer letters("\nabc");
  const auto ids = [&](std::string_view text) {
    const LineData lines(text, letters);
    Ids all;
    for (std::int64_t i = 0; i < lines.size(); ++i)
      all.insert(all.end(), lines.line(i).begin(), lines.line(i).end());
    return all;
  };
  const Ids same = ids("ab\nc\nabc\n");
  CHECK(same == Ids{0, 1, 2, 0, 0, 3, 0, 0, 1, 2, 3, 0});
  for (const char* text : {"ab\r\nc\r\nabc\r\n", "ab\rc\rabc",
                           "\xEF\xBB\xBF"
                           "ab\nc\r\n\r\nabc",
                           "\n\nab\n\nc\nabc"}) {
    CHECK(ids(text) == same);
  }
}

TEST_CASE("LineData: a split draws lines, and the seed determines them", "[train]") {
  std::string text;
  for (char letter = 'A'; letter <= 'Z'; ++letter) text += {letter, '\n'};
  const LineData lines(text, ByteTokenizer());
  const auto letters = [](const LineData& part) {
    std::string found;
    for (std::int64_t i = 0; i < part.size(); ++i) found += static_cast<char>(part.line(i)[1]);
    return found;
  };
  Rng rng(2), again(2);
  const Split<LineData> parts = split(lines, 0.25, rng);
  CHECK(parts.validation.size() == 7);
  CHECK(letters(parts.validation) == letters(split(lines, 0.25, again).validation));
  CHECK(letters(parts.validation) != "TUVWXYZ");
  std::string both = letters(parts.train) + letters(parts.validation);
  std::ranges::sort(both);
  CHECK(both == "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  CHECK_THROWS_AS(split(lines, 1.0, rng), ValueError);
}

TEST_CASE("LineData: no lines, no newline and unknown characters are refused", "[train]") {
  CHECK_THROWS_WITH(LineData("\n\r\n\n", ByteTokenizer()), ContainsSubstring("the text has no lines"));
  CHECK_THROWS_WITH(LineData("ab", CharacterTokenizer("ab")), ContainsSubstring("no token for the newline"));
  CHECK_THROWS_WITH(LineData("ab\nac\n", CharacterTokenizer("\nab")),
                    ContainsSubstring("[LineData] line 2: ") && ContainsSubstring("'c' (U+0063) at byte 1"));
}
