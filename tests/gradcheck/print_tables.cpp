#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/gradcheck/rows.h"

// Runs gradcheck on functions with planted bugs and on correct functions that are hard to check.
//
//   gradcheck_tables               prints the two tables of docs/gradcheck.md
//   gradcheck_tables FIRST LAST    counts missed bugs and false alarms, with these seeds and both orders

using namespace fovea;

namespace {

struct Seeds {
  std::uint64_t first, last;
};

int count_mistakes(const char* what, const std::vector<GradcheckRow>& rows, const Seeds& seeds) {
  int mistakes = 0, checks = 0;
  for (GradcheckRow row : rows) {
    for (const int order : {1, 2}) {
      if (!row.expected.empty() && order != row.options.order) continue;  // a bug is expected at one order
      row.options.order = order;
      for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed, ++checks) {
        const GradcheckReport report = check(row, seed);
        if (is_right(row, report)) continue;
        if (++mistakes <= 5)
          fmt::print("{}, order {}, seed {}: {}\n", row.name, order, seed, to_string(report));
      }
    }
  }
  fmt::print("{}: {} mistakes in {} checks, {} rows, seeds {} to {}\n", what, mistakes, checks, rows.size(),
             seeds.first, seeds.last);
  return mistakes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print("{}\n{}", planted_bugs_table(), hard_functions_table());
    return 0;
  }
  const Seeds seeds{std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10)};
  const int missed = count_mistakes("planted bugs", planted_bugs(), seeds);
  const int alarms = count_mistakes("hard functions", hard_functions(), seeds);
  return seeds.first <= seeds.last && missed + alarms == 0 ? 0 : 1;
}
