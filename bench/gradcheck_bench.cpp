// What checking gradients costs. peers/gradcheck.py checks the same attention layer with PyTorch's checker.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "fovea/fovea.h"

namespace {

using namespace fovea;

// Attention with 4 heads and biases, C = 24.
struct FourHeads {
  static constexpr std::int64_t heads = 4, channels = 24;
  Linear query, key, value, out;

  explicit FourHeads(Rng& rng)
      : query(channels, channels, rng),
        key(channels, channels, rng),
        value(channels, channels, rng),
        out(channels, channels, rng) {}

  Tensor operator()(const Tensor& x) const {
    const std::int64_t batch = x.size(0), time = x.size(1);
    const auto split = [&](const Linear& linear) {
      return permute(reshape(linear(x), {batch, time, heads, channels / heads}), {0, 2, 1, 3});
    };
    const Tensor y = attention(split(query), split(key), split(value), {.mask = Mask::causal()});
    return out(reshape(permute(y, {0, 2, 1, 3}), x.shape()));
  }

  static void visit(const FourHeads& self, Visitor& v) {
    v("query", self.query);
    v("key", self.key);
    v("value", self.value);
    v("out", self.out);
  }
};

void report_of(benchmark::State& state, const GradcheckReport& report) {
  if (!report.passed()) state.SkipWithError(to_string(report).c_str());
  state.counters["elements"] = static_cast<double>(report.elements);
  state.counters["evaluations"] = static_cast<double>(report.evaluations);
}

// Every element of all parameters and of the input (2, 7, 24).
void attention_in_full(benchmark::State& state) {
  Rng rng(1);
  const FourHeads layer(rng);
  const Tensor x = randn({2, 7, FourHeads::channels}, rng);
  GradcheckReport report;
  for (auto _ : state) {
    report = gradcheck(layer, x, {.order = static_cast<int>(state.range(0)), .expect_zero = {"key.b"}});
  }
  report_of(state, report);
}

// A feed-forward layer of 100,000 parameters along random directions.
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
