// Measures gradcheck. peers/gradcheck.py checks the same attention layer with PyTorch's gradcheck.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "fovea/fovea.h"

namespace {

using namespace fovea;

constexpr std::int64_t channels = 24, heads = 4;

void report_of(benchmark::State& state, const GradcheckReport& report) {
  if (!report.passed()) state.SkipWithError(to_string(report).c_str());
  state.counters["elements"] = static_cast<double>(report.elements);
  state.counters["evaluations"] = static_cast<double>(report.evaluations);
}

// Checks every element of all parameters and of the input (2, 7, 24).
void attention_in_full(benchmark::State& state) {
  Rng rng(1);
  const MultiHeadAttention layer(channels, heads, rng);
  const Tensor x = randn({2, 7, channels}, rng);
  GradcheckReport report;
  for (auto _ : state) {
    report = gradcheck(layer, x, {.order = static_cast<int>(state.range(0)), .expect_zero = {"bk"}});
  }
  report_of(state, report);
}

// Checks a linear layer of 100,000 parameters along random directions.
void large_layer_screened(benchmark::State& state) {
  Rng rng(1);
  const Linear layer(250, 400, rng);
  const Tensor x = randn({2, 7, 250}, rng);
  GradcheckReport report;
  for (auto _ : state) report = gradcheck(layer, x, {.screen = Screen{}});
  report_of(state, report);
}

BENCHMARK(attention_in_full)->ArgName("order")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(large_layer_screened)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
