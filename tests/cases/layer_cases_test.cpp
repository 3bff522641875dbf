#include "cases/layer_cases.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/catch.h"

// Every row of the table of layers.

using namespace fovea;

TEST_CASE("layers: gradients of both orders, and f32 against f64", "[layers]") {
  for (const LayerCase& row : layer_cases()) {
    DYNAMIC_SECTION(row.name) { CHECK(row.check({.order = 2})); }
  }
}

// A row's name begins with the name of its layer: a struct with a `visit` and a call operator.
TEST_CASE("every layer of the public headers has a row", "[layers]") {
  std::set<std::string> checked;
  for (const LayerCase& row : layer_cases()) checked.insert(row.name.substr(0, row.name.find(',')));

  const std::filesystem::path headers = FOVEA_SOURCE_DIR "/include/fovea/layers";
  const std::regex layer(R"(\nstruct (?:FOVEA_API )?(\w+) \{[^]*?\n\};)");
  std::size_t layers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(headers)) {
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string header = text.str();
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
