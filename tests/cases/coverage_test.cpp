#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cases/cases.h"
#include "cases/layer_cases.h"
#include "tests/support/catch.h"

// Every op and every layer has a row, and rows can be told apart by their names.

using namespace fovea;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::filesystem::path headers = FOVEA_SOURCE_DIR "/include/fovea";

}  // namespace

// A row's name begins with the name of its op.
TEST_CASE("every op that ops.h and attention.h declare has a row") {
  const std::string declared =
      text_of(headers / "autograd/ops.h") + text_of(headers / "autograd/ops/attention.h");
  std::set<std::string> checked;
  for (const Case& row : all_cases()) checked.insert(row.name.substr(0, row.name.find_first_of(" ,")));

  const std::regex declaration(R"((?:FOVEA_API|inline) [\w:<>]+ (operator[^\s(]+|\w+)\()");
  int ops = 0;
  for (std::sregex_iterator found(declared.begin(), declared.end(), declaration), end; found != end;
       ++found, ++ops) {
    const std::string op = (*found)[1];
    if (op == "split_equally") continue;                             // a form of split
    if (op == "alibi_slopes" || op == "relative_buckets") continue;  // they take numbers, not tensors
    INFO(op);
    CHECK(checked.count(op) == 1);
  }
  CHECK(ops > 60);
}

// A row's name begins with the name of its layer, which is a struct with a `visit` and a call operator.
TEST_CASE("every layer of the public headers has a row", "[layers]") {
  std::set<std::string> checked;
  for (const LayerCase& row : all_layer_cases()) checked.insert(row.name.substr(0, row.name.find(',')));

  const std::regex layer(R"(\nstruct (?:FOVEA_API )?(\w+) \{[^]*?\n\};)");
  std::size_t layers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(headers / "layers")) {
    const std::string header = text_of(entry.path());
    for (std::sregex_iterator found(header.begin(), header.end(), layer), end; found != end; ++found) {
      const std::string body = (*found)[0], name = (*found)[1];
      if (body.find("operator()(") == std::string::npos || body.find("void visit(") == std::string::npos)
        continue;
      ++layers;
      INFO(entry.path().filename() << ": " << name);
      CHECK(checked.count(name) == 1);
    }
  }
  CHECK(layers >= 7);
}

TEST_CASE("every file of cases has rows, and no two rows have the same name") {
  std::vector<std::string> names;
  for (const std::string& family : case_families()) CHECK_FALSE(cases_of(family).empty());
  for (const Case& row : all_cases()) names.push_back(row.name);
  for (const LayerCase& row : all_layer_cases()) names.push_back(row.name);
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
  CHECK_THROWS_AS(cases_of("nonsense"), ValueError);
  CHECK_THROWS_AS(layer_cases_of("nonsense"), ValueError);
}
