#include "fovea/train/io/safetensors.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <unistd.h>

#include "fovea/autograd/base/error.h"
#include "fovea/autograd/base/memory.h"
#include "fovea/autograd/base/rng.h"
#include "fovea/autograd/ops.h"
#include "fovea/layers/linear.h"
#include "tests/support/catch.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The bytes of a file with this header and data.
std::string file_with(const std::string& header, const std::string& data = {}) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

SafetensorsFile load_bytes(std::string_view bytes, const LoadSafetensorsOptions& options = {}) {
  return load_safetensors(std::as_bytes(std::span(bytes)), options);
}

const Tensor& find(const State& state, const std::string& name) {
  for (const auto& [own, value] : state.tensors) {
    if (own == name) return value;
  }
  throw Error("no such tensor: " + name);
}

std::string names_in(const fs::path& folder) {
  std::string names;
  for (const auto& entry : fs::directory_iterator(folder)) names += entry.path().filename().string() + " ";
  return names;
}

// A layer with two dtypes, a tie, a scalar and an empty tensor.
struct Model {
  Linear body;
  Tensor head = body.W;
  Tensor scale;
  Tensor mean = full({2, 1}, 0.1, f64);
  Tensor nothing = zeros({3, 0});

  explicit Model(std::uint64_t seed) : Model(Rng(seed)) {}
  explicit Model(Rng rng) : body(3, 5, rng), scale(parameter(randn({}, rng))) {}

  static void visit(const Model& self, Visitor& v) {
    v("body", self.body);
    v("head", self.head);
    v.tie("head", "body.W");
    v("scale", self.scale);
    v.buffer("mean", self.mean);
    v.buffer("nothing", self.nothing);
  }
};

TEST_CASE("safetensors: a layer's state comes back with its values, dtypes, ties and metadata", "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "model.safetensors";
  const Model model(1);
  const Metadata metadata{{"step", "12"}, {"config", R"({"layers": [1, "ä"]})"}, {"", "empty key"}};
  save_safetensors(path, state(model), metadata);

  const SafetensorsFile file = load_safetensors(path);
  CHECK(file.metadata == metadata);
  CHECK(file.skipped.empty());
  REQUIRE(file.state.aliases.size() == 1);
  CHECK(file.state.aliases[0].name == "head");
  CHECK(file.state.aliases[0].original == "body.W");
  CHECK(find(file.state, "mean").dtype() == f64);

  Model other(2);
  CHECK(load(other, file.state).complete());
  CHECK(other.body.W.to_vector() == model.body.W.to_vector());
  CHECK(other.scale.item() == model.scale.item());
  CHECK(other.head.is_same(other.body.W));
  CHECK(names_in(folder.path()) == "model.safetensors ");
}

TEST_CASE("safetensors: strided tensors are written in row-major order, and elements are aligned",
          "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  save_safetensors(path, {.tensors = {{"f32", x}, {"f64", to(x, f64)}, {"xT", transpose(x)}}, .aliases = {}});
  CHECK(find(load_safetensors(path).state, "xT").to_vector() == transpose(x).to_vector());

  const SafetensorsHeader header = read_safetensors_header(path);
  CHECK(header.data_begin % 8 == 0);
  REQUIRE(header.entries.size() == 3);
  CHECK(header.entries[0].name == "f64");
  CHECK(header.entries[0].dtype == "F64");
  CHECK(header.entries[1].begin == 48);
  CHECK(header.entries[2].shape == Shape{3, 2});
}

TEST_CASE("safetensors: a small file has the documented bytes", "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  save_safetensors(path, {.tensors = {{"a", tensor({1, -2})}}, .aliases = {}}, {{"k", "v"}});
  // The checksums are those of Python's zlib.crc32, that of the header with zeros in place of its own.
  const std::string header = R"({"__metadata__":{"fovea.crc32":"fovea.crc32 47afa72f c3872656","k":"v"},)"
                             R"("a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  CHECK(bytes_of(path) ==
        file_with(header + std::string((8 - header.size() % 8) % 8, ' '), {"\0\0\x80\x3f\0\0\0\xc0", 8}));

  save_safetensors(path, {});
  CHECK(bytes_of(path) == file_with(R"({"__metadata__":{"fovea.crc32":"fovea.crc32 084f22fe"}} )"));
  CHECK(load_safetensors(path).state.tensors.empty());
}

TEST_CASE("safetensors: bytes that do not match their checksum are an error that names the tensor",
          "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  save_safetensors(path, {.tensors = {{"a", tensor({1, -2})}, {"b", tensor({3, 5, 7})}}, .aliases = {}},
                   {{"k", "v"}});
  const std::string bytes = bytes_of(path);
  const auto load_with = [&](std::size_t at, char byte) {
    std::string changed = bytes;
    changed[at] = byte;
    load_safetensors(std::as_bytes(std::span(changed)));
  };
  CHECK_THROWS_WITH(load_with(bytes.size() - 2, 'x'),
                    ContainsSubstring("the elements of tensor 'b' do not match their checksum"));
  CHECK_THROWS_WITH(load_with(bytes.find("\"v\"") + 1, 'w'),
                    ContainsSubstring("its header does not match its checksum"));
  // The key itself, without which the file would pass for one of another program.
  CHECK_THROWS_WITH(load_with(bytes.find("fovea.crc32"), 'g'),
                    ContainsSubstring("its header does not match its checksum"));
  CHECK(read_safetensors_header(path).entries[1].crc32.has_value());
  CHECK(read_safetensors_header(path).metadata == Metadata{{"k", "v"}});
}

TEST_CASE("safetensors: a file that the Python package wrote loads, with every dtype that can be read",
          "[train]") {
  const fs::path path = FOVEA_SOURCE_DIR "/tests/golden/safetensors_file.safetensors";
  CHECK_THROWS_WITH(load_safetensors(path),
                    ContainsSubstring("tensor 'ids' is I64") && ContainsSubstring("skip_other_dtypes"));
  const SafetensorsFile file = load_safetensors(path, {.skip_other_dtypes = true});
  CHECK(file.skipped == std::vector<std::string>{"ids", "mask"});
  CHECK(file.metadata == Metadata{{"format", "np"}, {"note", "α\n\"β\""}});
  CHECK(find(file.state, "matrix").shape() == Shape{2, 3});
  CHECK(find(file.state, "matrix").to_vector() == std::vector<double>{0, 0.125, 0.25, 0.375, 0.5, 0.625});
  CHECK(find(file.state, "double").dtype() == f64);
  CHECK(find(file.state, "double").to_vector() == std::vector<double>{3.141592653589793, -1e300, 5e-324});
  CHECK(find(file.state, "scalar").shape().empty());
  CHECK(find(file.state, "scalar").item() == 0.5);
  CHECK(find(file.state, "scalar double").item() == 1.0 / 3);
  CHECK(find(file.state, "empty").shape() == Shape{3, 0, 2});
  CHECK(find(file.state, "größe \"q\"\\\n").item() == 7);

  const std::vector<double> half = find(file.state, "half").to_vector();
  const std::vector<double> brain = find(file.state, "brain").to_vector();
  CHECK(find(file.state, "brain").shape() == Shape{11, 1});
  CHECK(find(file.state, "brain").dtype() == f32);
  const std::vector<double> halves{0, 0, 1, -1.5, 65504, 0x1p-14, 0x1p-24, 0x1.ff8p-15, infinity, -infinity};
  const std::vector<double> brains{0,        0,        1,        -1.5,     0x1.fep127,
                                   0x1p-126, 0x1p-133, 3.140625, infinity, -infinity};
  CHECK(std::vector<double>(half.begin(), half.end() - 1) == halves);
  CHECK(std::vector<double>(brain.begin(), brain.end() - 1) == brains);
  for (const auto& values : {half, brain}) {
    CHECK(std::signbit(values[1]));
    CHECK(std::isnan(values.back()));
  }
}

TEST_CASE("safetensors: every f16 and bf16 has the value that its bits define", "[train]") {
  std::string data(2 * 65536, '\0');
  for (std::size_t i = 0; i < 65536; ++i) {
    data[2 * i] = static_cast<char>(i & 0xffU);
    data[2 * i + 1] = static_cast<char>(i >> 8U);
  }
  struct Kind {
    const char* dtype;
    int fraction_bits, bias;
  };
  const auto [dtype, fraction_bits, bias] = GENERATE(Kind{"F16", 10, 15}, Kind{"BF16", 7, 127});
  const SafetensorsFile file = load_bytes(file_with(
      fmt::format(R"({{"x":{{"dtype":"{}","shape":[65536],"data_offsets":[0,131072]}}}})", dtype), data));
  const std::vector<double> values = find(file.state, "x").to_vector();
  for (int i = 0; i < 65536; ++i) {
    const int fraction = i % (1 << fraction_bits);
    const int exponent = i % 32768 >> fraction_bits;
    const double found = values[static_cast<std::size_t>(i)];
    double expected = exponent == 0
                          ? std::ldexp(fraction, 1 - bias - fraction_bits)
                          : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
    if (exponent == 2 * bias + 1) expected = fraction == 0 ? infinity : std::nan("");
    if (std::isnan(expected)) {
      REQUIRE(std::isnan(found));
    } else {
      REQUIRE(found == (i < 32768 ? expected : -expected));
      REQUIRE(std::signbit(found) == (i >= 32768));
    }
  }
}

TEST_CASE("safetensors: data loads from any address and offset", "[train]") {
  const std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                             R"("u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const std::string bytes = " " + file_with(header, {"\xff\0\0\x80\x3f", 5});
  const SafetensorsFile file = load_bytes(std::string_view(bytes).substr(1), {.skip_other_dtypes = true});
  CHECK(find(file.state, "b").item() == 1);
}

TEST_CASE("safetensors: a faulty header is refused with the fault, before memory for a tensor is allocated",
          "[train]") {
  struct Refused {
    std::string header;
    std::string text;
  };
  const auto entry = [](const std::string& fields) { return R"({"a":{)" + fields + "}}"; };
  const auto shaped = [&](const std::string& shape, const std::string& range) {
    return entry(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + range);
  };
  const auto two = [](const std::string& first, const std::string& second) {
    const std::string start = R"(:{"dtype":"U8","shape":[4],"data_offsets":)";
    return R"({"a")" + start + first + R"(},"b")" + start + second + "}}";
  };
  const auto aliases = [](const std::string& text) {
    return R"({"__metadata__":{"fovea.aliases":)" + text +
           R"(},"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})";
  };
  // All with 8 bytes of data.
  const std::vector<Refused> cases{
      {"", "does not begin with a brace"},
      {" {}", "does not begin with a brace"},
      {"[]", "does not begin with a brace"},
      {"{}", "8 bytes follow the last tensor"},
      {"{", "not valid JSON at its byte"},
      {"{}}", "not valid JSON"},
      {std::string("{}\0\0", 4), "zero byte"},
      {R"({"a":1})", "value of 'a' is a number, not an object"},
      {R"({"a":[]})", "value of 'a' is a list"},
      {R"({"":{}})", "a tensor without a name"},
      {"{\"\xff\":{}}", "not valid JSON"},
      {shaped("[2]", "[0,8]").substr(0, 50), "not valid JSON"},
      {entry(""), "tensor 'a' has no dtype"},
      {entry(R"("dtype":"F32","shape":[2])"), "has no data_offsets"},
      {entry(R"("dtype":"F32","dtype":"F32")"), "has dtype twice"},
      {entry(R"("dtype":"F33")"), "dtype 'F33', which the format does not define"},
      {entry(R"("dtype":null)"), "tensor 'a' has null in its dtype"},
      {entry(R"("dtype":{"x":{}})"), "has an object in its dtype"},
      {entry(R"("color":1)"), "has 'color', which the format does not define"},
      {entry(R"("shape":2)"), "has a number in its shape"},
      {entry(R"("shape":[[2]])"), "has a list in its shape"},
      {entry(R"("shape":["2"])"), "has text in its shape"},
      {entry(R"("shape":[true])"), "has a boolean in its shape"},
      {entry(R"("shape":[-2])"), "has a negative number in its shape"},
      {entry(R"("shape":[2.0])"), "not whole"},
      {entry(R"("shape":[18446744073709551616])"), "beyond 64 bits"},
      {entry(R"("shape":[9223372036854775808])"), "more elements than an array can have"},
      {shaped("[4294967296,4294967296]", "[0,8]"), "more elements than an array can have"},
      {shaped("[4294967296,4294967296,0]", "[0,0]"), "more elements than an array can have"},
      {shaped("[9223372036854775807]", "[0,8]"), "more elements than an array can have"},
      {shaped("[3]", "[0,8]"),
       "tensor 'a', F32 of shape (3,), has 12 bytes, but its data_offsets are [0, 8]"},
      {shaped("[2]", "[8,0]"), "data_offsets are [8, 0]"},
      {shaped("[2]", "[0,8,8]"), "has 3 data_offsets"},
      {shaped("[2]", "[0]"), "has 1 data_offsets"},
      {shaped("[4]", "[0,16]"), "ends at byte 16 of the data, of which there are 8"},
      {shaped("[1]", "[0,4]"), "4 bytes follow the last tensor"},
      {shaped("[1]", "[4,8]"), "begins at byte 4 of the data, a gap: after byte 0"},
      {entry(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), "has 1.5 bytes"},
      {two("[0,4]", "[3,7]"), "tensor 'b' begins at byte 3 of the data, an overlap: before byte 4"},
      {two("[0,4]", "[0,4]"), "an overlap"},
      {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{}})", "has 'a' twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "has '__metadata__' twice"},
      {R"({"__metadata__":{"k":"v","k":"v"}})", "metadata key 'k' twice"},
      {R"({"__metadata__":{"k":1}})", "metadata value of 'k' is a number"},
      {R"({"__metadata__":{"k":{"deep":{}}}})", "metadata value of 'k' is an object"},
      {R"({"__metadata__":null})", "value of '__metadata__' is null"},
      {aliases(R"("no json")"), "fovea.aliases"},
      {aliases(R"("{\"b\":\"c\"}")"), "'b' stands for 'c'"},
      {aliases(R"("{\"a\":\"a\"}")"), "'a' stands for 'a'"},
      {aliases(R"("{\"b\":\"a\",\"b\":\"a\"}")"), "key 'b' twice"},
      {aliases(R"("{},\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}")"), "aliases"},
      {"{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", "more than 100 lists"},
      {"{" + std::string(100'000, '{'), "more than 100 lists"},
  };
  const std::int64_t live = memory().live_bytes;
  for (const auto& [header, text] : cases) {
    INFO(header.substr(0, 200));
    CHECK_THROWS_AS(load_bytes(file_with(header, "datadata")), FileError);
    CHECK_THROWS_WITH(load_bytes(file_with(header, "datadata")), ContainsSubstring(text));
    CHECK_THROWS_WITH(load_bytes(file_with(header, "datadata")),
                      Catch::Matchers::StartsWith("[load_safetensors] ") && !ContainsSubstring("\n"));
  }
  CHECK(memory().live_bytes == live);
}

TEST_CASE("safetensors: more than 63 axes are refused, and names are made safe to print", "[train]") {
  std::string sizes = "1";
  for (int i = 0; i < 63; ++i) sizes += ",1";
  const auto with_shape = [&](const std::string& shape) {
    return file_with(R"({"a":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,4]}})", "abcd");
  };
  CHECK_THROWS_WITH(load_bytes(with_shape(sizes)), ContainsSubstring("more than 63 axes"));
  CHECK(find(load_bytes(with_shape(sizes.substr(2))).state, "a").rank() == 63);
  CHECK_THROWS_WITH(load_bytes(file_with(R"({"a\nb\u0000c":1})")), ContainsSubstring(R"('a\nb\x00c')"));
  const std::string text = GENERATE(std::string(100'000, 'x'));
  try {
    load_bytes(file_with("{\"" + text + "\":1}"));
    FAIL("it loads");
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).size() < 300);
  }
}

TEST_CASE("safetensors: a file that is cut at any byte is refused", "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "model.safetensors";
  save_safetensors(path, state(Model(1)), {{"k", "v"}});
  const std::string whole = bytes_of(path);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CHECK_THROWS_AS(load_bytes(std::string_view(whole).substr(0, n)), FileError);
  }
  CHECK_THROWS_WITH(load_bytes(whole.substr(0, 7)), ContainsSubstring("7 bytes are no safetensors file"));
  CHECK_THROWS_WITH(load_bytes(whole.substr(0, 30)), ContainsSubstring("only 22 follow"));
  CHECK_THROWS_AS(load_bytes(whole + "x"), FileError);
  CHECK_THROWS_WITH(load_bytes(std::string(16, '\xff')), ContainsSubstring("at most 100,000,000"));
}

TEST_CASE("safetensors: names and keys that can't be kept are refused, and nothing is written", "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  const Tensor x = ones({2});
  const auto saves = [&](const State& state, const Metadata& metadata = {}) {
    save_safetensors(path, state, metadata);
  };
  CHECK_THROWS_WITH(saves({.tensors = {{"", x}}, .aliases = {}}), ContainsSubstring("has no name"));
  CHECK_THROWS_WITH(saves({.tensors = {{"__metadata__", x}}, .aliases = {}}),
                    ContainsSubstring("the name __metadata__"));
  CHECK_THROWS_WITH(saves({.tensors = {{"x", x}, {"x", x}}, .aliases = {}}), ContainsSubstring("'x' twice"));
  CHECK_THROWS_WITH(saves({.tensors = {{"x", x}}, .aliases = {{"x", "x"}}}), ContainsSubstring("'x' twice"));
  CHECK_THROWS_WITH(saves({.tensors = {{"x", x}}, .aliases = {{"y", "z"}}}),
                    ContainsSubstring("'y' is tied to 'z', but the state has no tensor 'z'"));
  CHECK_THROWS_WITH(saves({.tensors = {{"\xff", x}}, .aliases = {}}), ContainsSubstring("not UTF-8"));
  CHECK_THROWS_WITH(saves({}, {{"k", "\xc3"}}), ContainsSubstring("not UTF-8"));
  CHECK_THROWS_AS(saves({}, {{"fovea.aliases", "{}"}}), ValueError);
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("safetensors: an error names a file that can't be opened, and the reason", "[train]") {
  const TemporaryFolder folder;
  const std::string missing = folder / "none" / "x.safetensors";
  CHECK_THROWS_AS(load_safetensors(missing), FileError);
  CHECK_THROWS_WITH(load_safetensors(missing),
                    "[load_safetensors] can't open '" + missing + "': No such file or directory");
  CHECK_THROWS_WITH(read_safetensors_header(missing), ContainsSubstring("[read_safetensors_header]"));
  CHECK_THROWS_WITH(save_safetensors(missing, {}),
                    "[save_safetensors] can't write '" + missing + "': No such file or directory");
  CHECK_THROWS_WITH(load_safetensors(folder.path()), ContainsSubstring("is not a regular file"));
  CHECK_THROWS_WITH(save_safetensors(folder.path(), {}), ContainsSubstring("is not a regular file"));
}

TEST_CASE("safetensors: a full disk leaves the older file unchanged and no temporary file", "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  save_safetensors(path, {.tensors = {{"x", ones({2})}}, .aliases = {}});
  const std::string before = bytes_of(path);

  // A limit on the size of files fails a write in its middle, as a full disk does.
  struct rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const struct rlimit small = {5000, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string text;
  try {
    save_safetensors(path, {.tensors = {{"x", ones({2000})}}, .aliases = {}});
  } catch (const FileError& error) {
    text = error.what();
  }
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(text == "[save_safetensors] can't write '" + path.string() +
                    "': File too large; the older file there is unchanged");
  CHECK(bytes_of(path) == before);
  CHECK(names_in(folder.path()) == "x.safetensors ");
}

TEST_CASE("safetensors: a program that is killed while it saves leaves a whole file", "[train]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  std::vector<State> states;
  for (const double value : {0, 1, 2})
    states.push_back({.tensors = {{"x", full({50'000}, value)}}, .aliases = {}});
  save_safetensors(path, states[0]);
  for (int kill_after_us = 0; kill_after_us < 20'000; kill_after_us += 1'000) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::size_t i = 0;; ++i) save_safetensors(path, states[i % states.size()]);
    }
    usleep(static_cast<useconds_t>(kill_after_us));
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    const Tensor x = find(load_safetensors(path).state, "x");
    REQUIRE(-max(-x).item() == max(x).item());
  }
  save_safetensors(path, states[0]);
  CHECK(names_in(folder.path()) == "x.safetensors ");
}

TEST_CASE("safetensors: stale temporary files are removed, and no others", "[train]") {
  const TemporaryFolder folder;
  const std::vector<std::string> others{".fovea-0123456789abcdeg.tmp", ".fovea-0123.tmp", "fovea.tmp",
                                        ".fovea-0123456789abcdef.tmp~"};
  for (const std::string& name : others) std::ofstream(folder / name) << "x";
  std::ofstream(folder / ".fovea-0123456789abcdef.tmp") << "half a file";
  save_safetensors(folder / "x.safetensors", {});
  CHECK_FALSE(fs::exists(folder / ".fovea-0123456789abcdef.tmp"));
  for (const std::string& name : others) CHECK(fs::exists(folder / name));
}

}  // namespace
}  // namespace fovea
