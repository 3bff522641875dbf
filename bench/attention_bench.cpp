#include <benchmark/benchmark.h>

#include "fovea/fovea.h"

// Attention of one sequence, four heads of 32, forward and backward in f32. The argument is T; the counter is
// the peak of memory above inputs, output and gradients.
// The same in PyTorch: bench/peers/attention.py.
namespace {

using namespace fovea;

constexpr std::int64_t heads = 4, head_size = 32;

using Implementation = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const AttentionOptions&);

void run(benchmark::State& state, Implementation function, const Mask& mask) {
  const std::int64_t time = state.range(0);
  Rng rng(1);
  const auto draw = [&] { return randn({1, heads, time, head_size}, rng).set_requires_grad(); };
  const Tensor q = draw(), k = draw(), v = draw(), dy = randn(q.shape(), rng);
  const AttentionOptions options{.mask = mask};
  const auto pass = [&] { return grad({function(q, k, v, options)}, {q, k, v}, {.gradients = {dy}}); };

  const std::int64_t before = memory().live_bytes;
  reset_peak_memory();
  pass();
  const std::int64_t results = 4 * q.numel() * 4;  // the output and three gradients
  state.counters["MiB_above"] = static_cast<double>(memory().peak_bytes - before - results) / (1 << 20);
  for (auto _ : state) benchmark::DoNotOptimize(pass());
}

void fused_causal(benchmark::State& state) { run(state, attention, Mask::causal()); }
void fused_unmasked(benchmark::State& state) { run(state, attention, {}); }
void composed_causal(benchmark::State& state) { run(state, composed::attention, Mask::causal()); }

BENCHMARK(fused_causal)->RangeMultiplier(2)->Range(1024, 8192)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(fused_unmasked)->Arg(1024)->Arg(4096)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(composed_causal)->Arg(1024)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
