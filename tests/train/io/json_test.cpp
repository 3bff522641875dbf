#include "train/io/json.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "fovea/autograd/base/error.h"
#include "tests/support/catch.h"

using namespace fovea;
using namespace fovea::detail;

namespace {

// Each value of a text with the way to it: "a.[]=7".
std::vector<std::string> values_of(std::string_view text) {
  std::vector<std::string> values;
  read_json_values(text, [&](const JsonPath& path, const nlohmann::json& value) {
    std::string way;
    for (const auto& step : path) way += (way.empty() ? "" : ".") + step.value_or("[]");
    values.push_back(way + "=" + value.dump());
  });
  return values;
}

std::string nested(std::size_t depth, char open, char close) {
  const bool objects = open == '{';
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += objects && i > 0 ? R"("a":{)" : std::string(1, open);
  return text + std::string(depth, close);
}

}  // namespace

TEST_CASE("read_json_values: each value comes with the keys and lists around it", "[train]") {
  using Values = std::vector<std::string>;
  CHECK(values_of("7") == Values{"=7"});
  CHECK(values_of(R"({"a":{"b":[1,[-2,"x"]],"c":{}},"d":[],"":null,"e":1.5})") ==
        Values{"a.b.[]=1", "a.b.[].[]=-2", R"(a.b.[].[]="x")", "=null", "e=1.5"});
}

TEST_CASE("JSON: nesting has a limit, and brackets in texts don't count", "[train]") {
  for (const auto& [open, close] : {std::pair('[', ']'), std::pair('{', '}')}) {
    CHECK_NOTHROW(parse_json(nested(deepest_json, open, close)));
    CHECK_THROWS_WITH(parse_json(nested(deepest_json + 1, open, close)),
                      "it has more than 100 lists and objects within one another");
    CHECK_THROWS_AS(values_of(nested(1'000'000, open, close)), ValueError);
    CHECK_THROWS_AS(values_of(std::string(1'000'000, open)), ValueError);
  }
  const std::string brackets(200, '[');
  CHECK(parse_json(fmt::format(R"(["{0}\"{0}","\\",[]])", brackets)).size() == 3);
  CHECK_THROWS_AS(parse_json(fmt::format(R"(["\\",{}])", brackets)), ValueError);
}

TEST_CASE("JSON: an error says where the text is at fault and repeats nothing of it", "[train]") {
  CHECK_THROWS_WITH(parse_json("{\"a\":\n\x1b]0;x}"), "it is not valid JSON at its byte 7, in line 2");
  CHECK_THROWS_WITH(parse_json(""), "it is not valid JSON at its byte 1, in line 1");
  CHECK_THROWS_WITH(parse_json(std::string("1\0", 2)), "it has a zero byte at its byte 2");
  CHECK_THROWS_WITH(parse_json(std::string(1'000'001, ' ')),
                    "it has 1000001 bytes, and at most 1000000 are read");
  for (const char* text : {"{\"\xff\":1}", "nul", "[1,]", "{\"a\" 1}", "1 2", "1e999", "\"\\ud800\""}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_json(text), ValueError);
  }
}
