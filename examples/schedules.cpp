// Prints the learning rate of each kind of schedule at the steps where a phase begins or ends.

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "fovea/train/optimizers/schedule.h"

using namespace fovea;

int main() {
  // [schedules]
  constexpr std::int64_t N = 100, W = 9, D = 20;  // steps of the run, the warm-up, the final decay
  const Schedule constant({.rate = 1e-3, .steps = N, .warmup = W});
  const Schedule linear(
      {.kind = LrSchedule::linear, .rate = 1e-3, .final_rate = 1e-4, .steps = N, .warmup = W});
  const Schedule cosine(
      {.kind = LrSchedule::cosine, .rate = 1e-3, .final_rate = 1e-4, .steps = N, .warmup = W});
  const Schedule stable({.kind = LrSchedule::warmup_stable_decay,
                         .rate = 1e-3,
                         .final_rate = 1e-4,
                         .steps = N,
                         .warmup = W,
                         .decay_steps = D});
  // [schedules]

  fmt::print("| step | | constant | linear | cosine | warmup-stable-decay |\n");
  fmt::print("|---:|---|---:|---:|---:|---:|\n");
  const std::vector<std::pair<std::int64_t, const char*>> steps{
      {0, "the first update"},
      {1, ""},
      {8, ""},
      {9, "W: the base rate"},
      {10, ""},
      {54, "halfway from W to N - 1"},
      {79, "N - 1 - D: the last before its decay"},
      {80, ""},
      {89, ""},
      {98, ""},
      {99, "N - 1: the last update, the final rate"},
      {100, "beyond the run"}};
  for (const auto& [s, note] : steps) {
    fmt::print("| {} | {} | {:.7f} | {:.7f} | {:.7f} | {:.7f} |\n", s, note, constant(s), linear(s),
               cosine(s), stable(s));
  }
}
