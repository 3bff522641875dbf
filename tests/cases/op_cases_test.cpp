#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cases/cases.h"
#include "tests/support/catch.h"

// Every row of the case tables, with everything that the table adds to it.

using namespace fovea;

namespace {

void check_family(const std::string& family) {
  for (const Case& row : cases_of(family)) {
    DYNAMIC_SECTION(row.name) {
      const CaseReport report = check(row);
      for (const std::string& failure : report.failures) FAIL_CHECK(failure);
      CHECK(report.passed());
    }
  }
}

}  // namespace

TEST_CASE("cases: arithmetic") { check_family("arithmetic"); }
TEST_CASE("cases: pointwise") { check_family("pointwise"); }
TEST_CASE("cases: activations") { check_family("activations"); }
TEST_CASE("cases: compare") { check_family("compare"); }
TEST_CASE("cases: reduce") { check_family("reduce"); }
TEST_CASE("cases: shape") { check_family("shape"); }
TEST_CASE("cases: matmul") { check_family("matmul"); }
TEST_CASE("cases: embedding") { check_family("embedding"); }
TEST_CASE("cases: softmax") { check_family("softmax"); }
TEST_CASE("cases: cross_entropy") { check_family("cross_entropy"); }
TEST_CASE("cases: losses") { check_family("losses"); }
TEST_CASE("cases: layer_norm") { check_family("layer_norm"); }
TEST_CASE("cases: rms_norm") { check_family("rms_norm"); }
TEST_CASE("cases: rotary") { check_family("rotary"); }
TEST_CASE("cases: attention") { check_family("attention"); }
TEST_CASE("cases: dropout") { check_family("dropout"); }

TEST_CASE("every family of cases has a test") {
  const std::set<std::string> tested{"arithmetic", "pointwise",     "activations", "compare",
                                     "reduce",     "shape",         "matmul",      "embedding",
                                     "softmax",    "cross_entropy", "losses",      "layer_norm",
                                     "rms_norm",   "rotary",        "attention",   "dropout"};
  const std::vector<std::string> families = case_families();
  CHECK(std::set<std::string>(families.begin(), families.end()) == tested);
}

std::string header(const std::string& name) {
  std::ifstream file(FOVEA_SOURCE_DIR "/include/fovea/autograd/" + name);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A row's name begins with the name of its op.
TEST_CASE("every op that ops.h and attention.h declare has a row") {
  const std::string declared = header("ops.h") + header("ops/attention.h");
  std::set<std::string> checked;
  for (const Case& row : all_cases()) checked.insert(row.name.substr(0, row.name.find_first_of(" ,")));

  const std::regex declaration(R"((?:FOVEA_API|inline) [\w:<>]+ (operator[^\s(]+|\w+)\()");
  int ops = 0;
  for (std::sregex_iterator found(declared.begin(), declared.end(), declaration), end; found != end;
       ++found, ++ops) {
    const std::string op = (*found)[1];
    if (op == "alibi_slopes" || op == "relative_buckets") continue;  // they take numbers only
    INFO(op);
    CHECK(checked.count(op) == 1);
  }
  CHECK(ops > 60);
}
