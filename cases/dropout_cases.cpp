#include <fmt/format.h>

#include <cmath>

#include "cases/cases.h"
#include "fovea/autograd/graph/modes.h"

namespace fovea {
namespace {

// Whether dropout drops element i. Within a group of 64 elements, word i / 16 of the random numbers for
// counter i % 16 decides on element i.
bool dropped(std::uint64_t key, std::int64_t i, double p) {
  const auto counter = static_cast<std::uint64_t>(i / 64 * 16 + i % 16);
  return philox(key, counter)[static_cast<std::size_t>(i % 64 / 16)] < std::ldexp(p, 32);
}

}  // namespace

void add_dropout_cases(Cases& cases) {
  for (const double p : {0.25, 0.9}) {
    cases.add(fmt::format("dropout, p = {}", p), [p](Case& c) {
      c.input("x", {3, 5, 7});
      c.value = [=](const Inputs& in) {
        const TrainMode scope(11);
        return dropout(in["x"], p);
      };
      c.oracle = [=](const Inputs& in) {
        std::vector<double> values = in["x"].to_vector();
        const std::uint64_t key = Rng(11).next();
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = dropped(key, static_cast<std::int64_t>(i), p) ? 0 : values[i] / (1 - p);
        }
        return from_values(values, in["x"].shape(), f64);
      };
      for (const double wrong : {-0.1, 1.5, std::nan("")}) {
        c.refuses<ValueError>(fmt::format("a probability of {}", wrong), "[dropout] dropout of",
                              [=](const Inputs& in) { return dropout(in["x"], wrong); });
      }
    });
  }
  cases.add("dropout outside a TrainMode scope", [](Case& c) {
    c.input("x", {3, 5});
    c.value = [](const Inputs& in) { return dropout(2 * in["x"], 0.5); };
    c.oracle = [](const Inputs& in) { return 2 * in["x"]; };
  });
}

}  // namespace fovea
